"""Replicas with transactions, and compacted ones, that move between the directories of a node: what the log knows moves with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterReplicaLogDirsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from barnabas.simulation.disk import SimDisk
from tests.node.several_directories import Several
from tests.replication.hosting import batch

ROOT = Path("/disks")


class Producer:
    """A transactional producer of the topic t."""

    def __init__(self, node: Several, transactional_id: str) -> None:
        self.node, self.name, self.sequence = node, transactional_id, 0
        self.wait_for(lambda: self._find() == ErrorCode.NONE)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        self.wait_for(lambda: node.ask(request, 4).error_code == ErrorCode.NONE, tries=50)
        answer = node.ask(request, 4)
        assert answer.error_code == ErrorCode.NONE, answer
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def _find(self) -> int:
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name])
        code: int = self.node.ask(asked, 4).coordinators[0].error_code
        return code

    def wait_for(self, is_so: object, tries: int = 5_000) -> None:
        assert callable(is_so)
        for _ in range(tries):
            if is_so():
                return
            self.node.loop.run_until_complete(asyncio.sleep(0.001))
        raise AssertionError("it has not happened")

    def begin(self) -> None:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )

        def added() -> bool:
            (answered,) = self.node.ask(request, 3).results_by_topic_v3_and_below
            return bool(answered.results_by_partition[0].partition_error_code == ErrorCode.NONE)

        self.wait_for(added)

    def write(self, value: bytes, sequence: int | None = None) -> int:
        """Return the error of a batch with one record."""
        records = batch(
            value,
            timestamp=self.node.now_ms,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if sequence is None else sequence,
            transactional=True,
        )
        partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
        data = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
        asked = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=1000, topic_data=[data])
        code: int = self.node.ask(asked, 9).responses[0].partition_responses[0].error_code
        self.sequence += code == ErrorCode.NONE and sequence is None
        return code

    def end(self, *, commit: bool) -> None:
        asked = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )
        self.wait_for(lambda: self.node.ask(asked, 3).error_code == ErrorCode.NONE)


def log_of(node: Several) -> PartitionLog:
    return node.server.replica_manager.partition("t", 0).log


def home(node: Several) -> str:
    return Path(node.server.replica_manager.log_manager.directory_of("t", 0).root_dir).name


def moved(node: Several, name: str) -> None:
    Directory, Topic = AlterReplicaLogDirsRequest.AlterReplicaLogDir, AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    asked = Directory(path=f"/disks/{name}", topics=[Topic(name="t", partitions=[0])])
    answer = node.ask(AlterReplicaLogDirsRequest(dirs=[asked]))
    assert answer.results[0].partitions[0].error_code == ErrorCode.NONE
    for _ in range(5_000):
        if home(node) == name:
            return
        node.loop.run_until_complete(asyncio.sleep(0.001))
    raise AssertionError("it has not moved")


def committed(node: Several) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the bytes of a read of what is committed, and the aborted transactions that it names."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = FetchRequest.FetchTopic(topic="t", partitions=[partition])
    answer = node.ask(FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=1, topics=[wanted]), 12)
    (part,) = answer.responses[0].partitions
    return bytes(part.records), [(each.producer_id, each.first_offset) for each in part.aborted_transactions]


@pytest.mark.parametrize("is_killed", [False, True])
def test_open_and_ended_transactions_move_along(is_killed: bool) -> None:
    disk = SimDisk()
    node = Several(ROOT, disk)
    node.create_topic("t")
    source = node.assigned("t")
    target = next(name for name in "ca" if name != source)
    zombie, aborting, open_one = (Producer(node, name) for name in ("zombie", "aborting", "open"))
    zombie.begin()
    assert zombie.write(b"committed") == ErrorCode.NONE
    zombie.end(commit=True)
    aborting.begin()
    assert aborting.write(b"aborted") == ErrorCode.NONE
    aborting.end(commit=False)
    Producer(node, "zombie")
    renewed = Producer(node, "zombie")
    renewed.begin()
    assert renewed.write(b"renewed") == ErrorCode.NONE
    renewed.end(commit=True)
    open_one.begin()
    assert open_one.write(b"open") == ErrorCode.NONE
    before = (log_of(node).last_stable_offset, log_of(node).log_end_offset, committed(node))
    assert before[0] < before[1]
    assert before[2][1] == [(aborting.id, 2)]

    moved(node, target)
    assert (log_of(node).last_stable_offset, log_of(node).log_end_offset, committed(node)) == before
    assert zombie.write(b"late") in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert open_one.write(b"open", sequence=0) == ErrorCode.NONE
    assert log_of(node).log_end_offset == before[1], "the repeated batch is known"
    assert open_one.write(b"out of order", sequence=5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert open_one.write(b"more") == ErrorCode.NONE
    disk.kill() if is_killed else node.close()

    again = Several(ROOT, disk, seed=2)
    assert (home(again), log_of(again).last_stable_offset) == (target, before[0])
    assert committed(again)[1] == [(aborting.id, 2)]
    again.close()


def test_a_compacted_topic_moves_and_is_cleaned_again() -> None:
    disk = SimDisk()
    settings = {"log.cleaner.backoff.ms": "0"}
    node = Several(ROOT, disk, **settings)
    node.create_topic("t", cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.0")
    source = node.assigned("t")
    target = next(name for name in "ca" if name != source)
    assert log_of(node).config.compact
    for number in range(4):
        append(node, b"k", b"value-%d" % number)
    clean(node)
    directories = {Path(each.root_dir).name: each for each in node.node.log_manager.online}
    cleaned_to = directories[source].cleaner.cleaned_to(("t", 0))
    assert cleaned_to > 0
    append(node, b"k", None)
    moved(node, target)
    assert directories[target].cleaner.cleaned_to(("t", 0)) >= cleaned_to
    assert directories[source].cleaner.cleaned_to(("t", 0)) == 0
    append(node, b"other", b"x")
    clean(node)
    assert directories[target].cleaner.cleaned_to(("t", 0)) > cleaned_to
    data = log_of(node).read(0, 1 << 20, max_offset=log_of(node).log_end_offset).read()
    assert b"value-" not in bytes(data)
    node.close()
    again = Several(ROOT, disk, seed=2, **settings)
    assert log_of(again).log_end_offset == 6
    again.close()


def append(node: Several, key: bytes, value: bytes | None) -> None:
    log = log_of(node)
    log.append_as_leader(batch(value, key=key, timestamp=node.now_ms), log.latest_epoch)
    log.high_watermark = log.log_end_offset


def clean(node: Several) -> None:
    log_of(node).roll()
    node.now_ms += 60_000
    for each in node.node.log_manager.online:
        each.cleaner.poll()
    for _ in range(200):
        node.loop.run_until_complete(asyncio.sleep(0.001))
