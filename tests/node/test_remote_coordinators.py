"""Transactions, groups and share groups over three brokers: whatever moves, and whatever is lost between the brokers.

The story of transactions: a producer commits, aborts and commits. Each transaction writes to a partition of every broker, and commits an
offset of a group. At each request between brokers something happens: the coordinator moves, or the leader that is asked, or the
request or its answer is lost. Every transaction ends in all its partitions as its producer was told, and nothing stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from barnabas.protocol.partition_for import share_coordinator_key
from barnabas.protocol.state_batches import StateBatch
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.share.dead_letters import DeadLetterWriter
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import SharePartitionKey
from tests.node.led_brokers import EVERYTHING, HANGS, LOST_ANSWER, LOST_REQUEST, Cluster
from tests.replication.hosting import batch, topic_id
from tests.share.test_dead_letters import Settings

TX, GROUP = "tx", "group"
TOPIC = topic_id(9)
LEADERS = (1, 2, 3)
OUTCOMES = (True, False, True)
PRODUCE_VERSION, COMMIT_VERSION, END_VERSION = 12, 5, 5
RETRY_SECONDS = 0.02
TRIES = 200

_LATER = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = story_cluster()
    yield made
    made.close()


def story_cluster() -> Cluster:
    made = Cluster()
    made.create("t", 9, *LEADERS)
    return made


class Producer:
    """A transactional producer of version 2: the brokers add the partitions."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.producer_id = self.epoch = -1

    async def _ask(self, key: tuple[str, int], request: Any, version: int, code: Callable[[Any], int]) -> Any:
        """Ask the leader of a partition as long as the error is one that passes."""
        for _ in range(TRIES):
            response = await self.cluster.led_by(*key).handle(request(), version)
            if ErrorCode(code(response)) not in _LATER:
                assert code(response) == 0, response
                return response
            await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError(f"{response} for too long")

    async def begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=TX, transaction_timeout_ms=60_000)
        coordinator = self.cluster.coordinator(1, TX)
        response = await self._ask(coordinator, lambda: request, 5, lambda r: r.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch

    async def write(self, index: int, value: bytes) -> None:
        def request() -> ProduceRequest:
            records = batch(
                value,
                timestamp=self.cluster.now_ms(),
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=0,
                transactional=True,
            )
            part = ProduceRequest.PartitionProduceData(index=index, records=records)
            topic = ProduceRequest.TopicProduceData(name="t", partition_data=[part])
            return ProduceRequest(transactional_id=TX, acks=-1, timeout_ms=1000, topic_data=[topic])

        await self._ask(
            ("t", index), request, PRODUCE_VERSION, lambda r: r.responses[0].partition_responses[0].error_code
        )

    async def commit_offset(self, offset: int) -> None:
        part = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=TX,
            group_id=GROUP,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        await self._ask(
            self.cluster.coordinator(0, GROUP),
            lambda: request,
            COMMIT_VERSION,
            lambda r: r.topics[0].partitions[0].error_code,
        )

    async def end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=TX, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        coordinator = self.cluster.coordinator(1, TX)
        response = await self._ask(coordinator, lambda: request, END_VERSION, lambda r: r.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch


async def play(cluster: Cluster) -> None:
    producer = Producer(cluster)
    await producer.begin()
    for number, commit in enumerate(OUTCOMES):
        for index in range(len(LEADERS)):
            await producer.write(index, b"%d" % number)
        await producer.commit_offset(number)
        await producer.end(commit)


def committed(cluster: Cluster, index: int) -> list[bytes | None]:
    """What a reader of committed records sees in a partition of the topic."""
    log = cluster.led_by("t", index).replicas.partition("t", index).log
    assert log.last_stable_offset == log.log_end_offset, f"a transaction is open in t-{index}"
    data = log.read(0, EVERYTHING, max_offset=log.log_end_offset).read()
    seen: list[bytes | None] = []
    open_records: list[bytes | None] = []
    for at, header in iter_batches(data):
        records = list(iter_records(data[at : at + header.size]))
        if not header.is_control:
            open_records += [record.value for record in records]
            continue
        if control_type(records[0].key) is ControlRecordType.COMMIT:
            seen += open_records
        open_records = []
    return seen


async def offset_of_the_group(cluster: Cluster) -> int:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    broker = cluster.led_by(*cluster.coordinator(0, GROUP))
    response = await broker.handle(OffsetFetchRequest(groups=[group], require_stable=True), 8)
    (found,) = response.groups[0].topics[0].partitions
    assert found.error_code == 0
    offset: int = found.committed_offset
    return offset


def check(cluster: Cluster) -> None:
    cluster.advance(5_000)
    told = [b"%d" % number for number, commit in enumerate(OUTCOMES) if commit]
    assert [committed(cluster, index) for index in range(len(LEADERS))] == [told] * len(LEADERS)
    assert cluster.run(offset_of_the_group(cluster)) == max(n for n, commit in enumerate(OUTCOMES) if commit)


def test_a_transaction_reaches_all_brokers(cluster: Cluster) -> None:
    cluster.run(play(cluster))
    check(cluster)
    kinds = [kind for _, _, kind in cluster.requests]
    assert {"AddPartitionsToTxn", "WriteTxnMarkers"} == set(kinds)
    assert {broker_id for broker_id, _, kind in cluster.requests if kind == "WriteTxnMarkers"} != {
        cluster.leader(*cluster.coordinator(1, TX))
    }
    assert {purpose for _, purpose, _ in cluster.requests} == {"add-partitions-to-txn", "transaction-markers"}


def coordinator_moves(cluster: Cluster, number: int) -> None:
    cluster.move(*cluster.coordinator(1, TX))


def group_moves(cluster: Cluster, number: int) -> None:
    cluster.move(*cluster.coordinator(0, GROUP))


def asked_broker_loses_everything(cluster: Cluster, number: int) -> None:
    broker_id = cluster.requests[number][0]
    for topic, index in list(cluster.partitions()):
        if cluster.leader(topic, index) == broker_id:
            cluster.move(topic, index)


def all_leaders_move(cluster: Cluster, number: int) -> None:
    for index in range(len(LEADERS)):
        cluster.move("t", index)


def asked_broker_is_paused_and_replaced(cluster: Cluster, number: int) -> str:
    # The others learn of it while the request is under way.
    cluster.loop.call_later(1, asked_broker_loses_everything, cluster, number)
    return HANGS


def request_is_lost(cluster: Cluster, number: int) -> str:
    return LOST_REQUEST


def answer_is_lost(cluster: Cluster, number: int) -> str:
    return LOST_ANSWER


def coordinator_moves_and_the_answer_is_lost(cluster: Cluster, number: int) -> str:
    coordinator_moves(cluster, number)
    return LOST_ANSWER


@pytest.mark.parametrize(
    "event",
    [
        coordinator_moves,
        group_moves,
        asked_broker_loses_everything,
        all_leaders_move,
        asked_broker_is_paused_and_replaced,
        request_is_lost,
        answer_is_lost,
        coordinator_moves_and_the_answer_is_lost,
    ],
)
def test_whatever_happens_at_each_request_between_brokers(event: Callable[[Cluster, int], str | None]) -> None:
    point, happened = 0, True
    while happened:
        happened = False
        cluster = story_cluster()

        def on_request(number: int, kind: str, cluster: Cluster = cluster, point: int = point) -> str | None:
            nonlocal happened
            if number != point:
                return None
            happened = True
            return event(cluster, number)

        cluster.on_request = on_request
        cluster.run(play(cluster))
        check(cluster)
        cluster.close()
        point += 1
    assert point > 10, "the brokers ask each other at least that often"


def test_an_unfinished_end_is_finished_by_the_next_coordinator(cluster: Cluster) -> None:
    moved = []

    def on_request(number: int, kind: str) -> str | None:
        if kind != "WriteTxnMarkers" or len(moved) >= 3:
            return None
        moved.append(number)
        coordinator_moves(cluster, number)
        return LOST_REQUEST

    cluster.on_request = on_request
    cluster.run(play(cluster))
    check(cluster)
    assert len(moved) == 3


def test_a_former_coordinator_says_so(cluster: Cluster) -> None:
    """Also to a member that waits for the others to join."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")

    def join(member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )

    partition = cluster.coordinator(0, GROUP)
    former = cluster.led_by(*partition)
    first = cluster.run(former.handle(join(""), 3))
    assert first.error_code == 0
    waiting = asyncio.ensure_future(former.handle(join(""), 3), loop=cluster.loop)
    cluster.advance(100)
    assert not waiting.done(), "it waits for the first member to join again"
    cluster.move(*partition)
    assert cluster.run(waiting).error_code == ErrorCode.NOT_COORDINATOR
    assert cluster.run(former.handle(join(first.member_id), 3)).error_code == ErrorCode.NOT_COORDINATOR
    init = InitProducerIdRequest(transactional_id=TX, transaction_timeout_ms=60_000)
    transactions = cluster.coordinator(1, TX)
    former = cluster.led_by(*transactions)
    assert cluster.run(former.handle(init, 5)).error_code == 0
    cluster.move(*transactions)
    assert cluster.run(former.handle(init, 5)).error_code == ErrorCode.NOT_COORDINATOR
    cluster.advance(1000)
    assert cluster.run(cluster.led_by(*transactions).handle(init, 5)).error_code == 0


def test_brokers_give_out_distinct_producer_ids(cluster: Cluster) -> None:
    init = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    ids = [cluster.run(broker.handle(init, 5)).producer_id for broker in cluster.brokers.values() for _ in range(3)]
    assert len(set(ids)) == 9


def test_a_partition_that_is_not_in_the_transaction_is_found_by_its_coordinator(cluster: Cluster) -> None:
    producer = Producer(cluster)
    cluster.run(producer.begin())
    coordinator = cluster.led_by(*cluster.coordinator(1, TX))
    elsewhere = next(broker for broker in cluster.brokers.values() if broker is not coordinator)
    partitions = frozenset({("t", 0)})
    verify = elsewhere.services.transaction_coordinator.remote_partitions.ask
    asked = (TX, producer.producer_id, producer.epoch, partitions)
    assert cluster.run(verify(*asked, verify_only=True)) == {("t", 0): ErrorCode.TRANSACTION_ABORTABLE}
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TX,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[topic],
    )
    cluster.run(coordinator.handle(add, 3))
    assert cluster.run(verify(*asked, verify_only=True)) == {("t", 0): ErrorCode.NONE}


# Share groups

WRITE = StateWrite(1, 0, 5, 2, (StateBatch(7, 8, 2, 1),))


def keys() -> list[SharePartitionKey]:
    return [SharePartitionKey("sg", bytes(TOPIC), index) for index in range(len(LEADERS))]


async def share_story(cluster: Cluster) -> None:
    """Each broker is a leader, and one of them the group's coordinator; their states may be anywhere."""
    for key in keys():
        await cluster.brokers[1].share.persister.initialize(key, 1, 3)
    for key, leader in zip(keys(), LEADERS, strict=True):
        persister = cluster.brokers[leader].share.persister
        assert (await persister.read(key, 0)).start_offset == 3
        await persister.write(key, WRITE)
    for key, leader in zip(keys(), LEADERS, strict=True):
        state = await cluster.brokers[leader].share.persister.read(key, 0)
        assert (state.start_offset, state.state_batches) == (5, WRITE.batches)
        assert await cluster.brokers[2].share.persister.summary(key) == StateSummary(1, 0, 5, 2)
    for key in keys():
        await cluster.brokers[3].share.persister.delete(key)
        assert (await cluster.brokers[1].share.persister.summary(key)).start_offset == -1


def test_the_states_of_share_groups_are_kept_by_any_broker(cluster: Cluster) -> None:
    cluster.run(share_story(cluster))
    kinds = {kind.removesuffix("ShareGroupState") for _, _, kind in cluster.requests}
    assert kinds == {"Initialize", "Read", "Write", "Delete", "ReadShareGroupStateSummary"}
    assert len({broker_id for broker_id, _, _ in cluster.requests}) > 1


def share_coordinators_move(cluster: Cluster, number: int) -> None:
    for key in keys():
        cluster.move(*cluster.coordinator(2, share_coordinator_key(*key)))


@pytest.mark.parametrize(
    "event", [share_coordinators_move, asked_broker_is_paused_and_replaced, request_is_lost, answer_is_lost]
)
def test_whatever_happens_to_the_states_of_share_groups(event: Callable[[Cluster, int], str | None]) -> None:
    point, happened = 0, True
    while happened:
        happened = False
        cluster = story_cluster()

        def on_request(number: int, kind: str, cluster: Cluster = cluster, point: int = point) -> str | None:
            nonlocal happened
            if number != point:
                return None
            happened = True
            return event(cluster, number)

        cluster.on_request = on_request
        cluster.run(share_story(cluster))
        cluster.close()
        point += 1
    assert point > 5


def test_the_ends_of_partitions_are_asked_of_their_leaders(cluster: Cluster) -> None:
    async def local(topic: str, index: int) -> int:
        return -5

    cluster.run(play(cluster))
    cluster.advance(5_000)
    cluster.requests.clear()
    end_offset = cluster.brokers[1].remote.end_offset(local)
    ends = [cluster.run(end_offset("t", index)) for index in range(len(LEADERS))]
    log = cluster.brokers[2].replicas.partition("t", 1).log
    assert ends == [-5, log.high_watermark, log.high_watermark]
    assert [(broker_id, kind) for broker_id, _, kind in cluster.requests] == [(2, "ListOffsets"), (3, "ListOffsets")]


@pytest.mark.parametrize("fate", [None, LOST_REQUEST, LOST_ANSWER])
def test_dead_letters_reach_a_topic_that_is_not_here(cluster: Cluster, fate: str | None) -> None:
    cluster.create("dlq", 10, 3, replicas=[3])
    cluster.on_request = lambda number, kind: None if number else fate
    broker = cluster.brokers[1]
    settings = Settings(None)  # type: ignore[arg-type]
    writer = DeadLetterWriter(
        broker.replicas,
        settings,
        settings,
        loop=cluster.loop,
        now_ms=cluster.now_ms,
        remote=broker.remote.letters(1_000),
    )
    cluster.run(writer.write("g", broker.replicas.partition("t", 0), 5, 6, 1, rejected=True))
    log = cluster.brokers[3].replicas.partition("dlq", 0).log
    data = log.read(0, EVERYTHING, max_offset=log.high_watermark).read()
    letters = [record for at, header in iter_batches(data) for record in iter_records(data[at : at + header.size])]
    found = [dict(letter.headers)["__dlq.errors.offset"] for letter in letters]
    assert found == [b"5", b"6"] * (2 if fate == LOST_ANSWER else 1), "at least once"
    assert {purpose for _, purpose, _ in cluster.requests} == {"dead-letters"}


def test_the_end_of_the_broker_fails_what_waits(cluster: Cluster) -> None:
    cluster.brokers[1].remote.close()
    assert repr(cluster.brokers[1].remote) == "<RemoteCoordinators of=1 parts=2>"
    assert cluster.leader(GROUP_METADATA, 0) in cluster.brokers
