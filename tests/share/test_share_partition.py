"""A share partition with its fetches, over real logs in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.append_checks import AppendOrigin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid
from barnabas.protocol.state_batches import StateBatch
from barnabas.records.control import build_end_transaction_marker
from barnabas.share.acknowledgement import Acknowledgement
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import ShareSettings, duration_ms
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.share_partition import SharePartition
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from barnabas.steps import start
from tests.replication.hosting import Hosting, batch
from tests.share.state_store import WatchedManager

ACCEPT, RELEASE = 1, 2
LOCK_MS = 30_000


def state(start_offset: int = 0, *batches: tuple[int, int, int, int]) -> ShareGroupOffset:
    return ShareGroupOffset(0, 1, 0, start_offset, -1, tuple(StateBatch(*each) for each in batches))


class Persister:
    """Keeps the writes, and answers at once unless a test makes it wait or fail."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.state = state()
        self.written: list[StateWrite] = []
        self.error: ErrorCode | Exception | None = None
        self.waits = False
        self.waiting: list[asyncio.Future[None]] = []

    async def _answer(self) -> None:
        if self.waits:
            waiting: asyncio.Future[None] = self.loop.create_future()
            self.waiting.append(waiting)
            await waiting
        if self.error is not None:
            raise self.error if isinstance(self.error, Exception) else KafkaError(self.error)

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        await self._answer()
        return self.state

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        self.written.append(write)
        await self._answer()

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        raise NotImplementedError

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        raise NotImplementedError

    async def delete(self, key: SharePartitionKey) -> None:
        raise NotImplementedError

    def go_on(self, error: ErrorCode | Exception | None = None) -> None:
        self.waits, self.error = False, error
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.set_result(None)


class Settings:
    """A group's settings, as a test wants them."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {
            "share.record.lock.duration.ms": LOCK_MS,
            "share.delivery.count.limit": 5,
            "share.partition.max.record.locks": 2000,
            "share.renew.acknowledge.enable": True,
            "share.isolation.level": "read_uncommitted",
            "share.auto.offset.reset": "latest",
        }

    def value(self, group_id: str, name: str) -> object:
        assert group_id == "g"
        return self.values[name]

    def int_value(self, group_id: str, name: str) -> int:
        assert group_id == "g"
        return int(self.values[name])


class Sharing:
    """The share partitions of one broker with one topic `q`."""

    def __init__(self, root: Path) -> None:
        self.hosting = Hosting(root)
        self.topic_id = bytes(self.hosting.create_topic("q", 2))
        self.persister = Persister(self.hosting.loop)
        self.settings = Settings()
        self.manager = WatchedManager(
            self.hosting.replicas,
            persister=self.persister,
            settings=ShareSettings(self.settings),
            sessions=ShareSessionCache(10),
            loop=self.hosting.loop,
            now_ms=self.hosting.now_ms,
        )

    def id(self, index: int = 0) -> TopicPartitionId:
        return TopicPartitionId(self.topic_id, index)

    def fetch(
        self,
        member: str = "m",
        *indexes: int,
        wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        strict: bool = False,
        epoch: int = 1,
    ) -> asyncio.Future[Any]:
        level = ShareSettings(self.settings).isolation_level("g")
        params = ShareFetchParams("g", member, wait_ms, min_bytes, max_bytes, max_records, 100, strict, level)
        return start(
            self.manager.fetch(params, [self.id(index) for index in indexes or (0,)], epoch), self.hosting.loop
        )

    def got(self, future: asyncio.Future[Any]) -> list[tuple[int, int, int, int]]:
        assert future.done()
        return [
            (partition_id.partition, part.first_offset, part.last_offset, part.delivery_count)
            for partition_id, data in future.result().items()
            for part in data.acquired_records
        ]

    def errors(self, future: asyncio.Future[Any]) -> dict[int, int]:
        return {partition_id.partition: data.error_code for partition_id, data in future.result().items()}

    def acknowledge(self, first: int, last: int, *types: int, member: str = "m") -> Any:
        batches = {self.id(): [Acknowledgement(first, last, types or (ACCEPT,))]}
        return start(self.manager.acknowledge("g", member, batches), self.hosting.loop)

    def outcome(self, future: asyncio.Future[Any]) -> ErrorCode:
        error = future.result()[self.id()]
        return ErrorCode.NONE if error is None else error.code

    @property
    def shared(self) -> SharePartition:
        return self.manager.shared


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Sharing]:
    made = Sharing(tmp_path)
    yield made
    made.manager.close()
    made.hosting.close()


# -- beginning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", None), ("by_duration:PT1H", 1)])
def test_a_group_without_a_state_starts_where_its_reset_says(sharing: Sharing, reset: str, first: int | None) -> None:
    now = sharing.hosting.now_ms()
    sharing.settings.values["share.auto.offset.reset"] = reset
    sharing.persister.state = state(-1)
    sharing.hosting.append("q", b"old", timestamp=now - 7_200_000)
    sharing.hosting.append("q", b"new", timestamp=now - 60_000)
    got = sharing.got(sharing.fetch())
    assert got == ([] if first is None else [(0, first, 1, 1)])


@pytest.mark.parametrize("ends", ["known", "another leader", "deleted"])
def test_a_new_leader_waits_until_it_knows_where_a_group_starts(sharing: Sharing, ends: str) -> None:
    hosting = sharing.hosting
    topic_id = hosting.create_topic("two", replicas=(1, 2))
    sharing.topic_id = bytes(topic_id)
    sharing.settings.values["share.auto.offset.reset"] = "latest"
    sharing.persister.state = state(-1)
    hosting.append("two", b"x")
    hosting.change(topic_id, leader=1)
    waiting = sharing.fetch(wait_ms=2_000)
    hosting.advance(1_000)
    if ends == "known":
        hosting.replicas.partition("two", 0).update_follower(2, 1)
        hosting.advance(50)
        assert sharing.shared.next_fetch_offset() == 1
        hosting.append("two", b"y")
        hosting.replicas.partition("two", 0).update_follower(2, 2)
        hosting.advance(10)
        assert sharing.got(waiting) == [(0, 1, 1, 1)]
        return
    if ends == "another leader":
        hosting.change(topic_id, leader=2)
    else:
        hosting.delete_topic(topic_id)
        sharing.manager.topics_deleted([bytes(topic_id)])
    hosting.advance(1_000)
    assert sharing.errors(waiting) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize(
    ("text", "ms"),
    [("PT1H", 3_600_000), ("P1D", 86_400_000), ("PT1.5S", 1_500), ("P2DT3H4M", 183_840_000), ("-PT1M", -60_000)],
)
def test_a_duration_is_parsed_to_milliseconds(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


def test_a_fetch_waits_for_the_state(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.persister.waits = True
    one, two = sharing.fetch("a", wait_ms=1_000), sharing.fetch("b", wait_ms=1_000)
    assert not one.done()
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.got(one) == [(0, 0, 0, 1)]
    assert not two.done()
    sharing.hosting.advance(1_000)
    assert sharing.got(two) == []


@pytest.mark.parametrize("waits", [False, True])
def test_the_first_share_partition_that_is_read_answers(sharing: Sharing, waits: bool) -> None:
    for index in (0, 1):
        sharing.hosting.append("q", b"x", index=index)
    sharing.persister.waits = waits
    one, two = (sharing.fetch(member, 0, 1, wait_ms=1_000, epoch=0) for member in ("a", "b"))
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.got(one) == [(0, 0, 0, 1)], "although the other has been read in the same turn of the loop"
    assert sharing.got(two) == [(1, 0, 0, 1)]
    assert sharing.errors(one) == {0: ErrorCode.NONE}
    for index in (0, 1):
        sharing.hosting.append("q", b"y", index=index)
    assert sharing.got(sharing.fetch("a", 0, 1, epoch=2)) == [(0, 1, 1, 1), (1, 1, 1, 1)], "both, once they are known"


def test_records_of_all_partitions_count_when_enough_is_asked_for(sharing: Sharing) -> None:
    for index in (0, 1):
        sharing.hosting.append("q", b"x", index=index)
    size = len(batch(b"x"))
    assert sharing.got(sharing.fetch("a", 0, 1, wait_ms=1_000, min_bytes=size + 1, epoch=0)) == [
        (0, 0, 0, 1),
        (1, 0, 0, 1),
    ]


@pytest.mark.parametrize(
    ("error", "returned"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_state_that_cannot_be_read_fails_the_fetch_and_is_read_again(
    sharing: Sharing, error: ErrorCode, returned: ErrorCode
) -> None:
    sharing.persister.error = error
    assert sharing.errors(sharing.fetch()) == {0: returned}
    sharing.persister.error = None
    sharing.hosting.append("q", b"x")
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)], "the next fetch tries again"


def test_an_invalid_state_fails_the_fetch(sharing: Sharing) -> None:
    sharing.persister.state = state(5, (3, 4, 0, 1))
    assert sharing.errors(sharing.fetch()) == {0: ErrorCode.UNKNOWN_SERVER_ERROR}


# -- fetching ------------------------------------------------------------------------------------------------------------


def test_a_fetch_waits_for_enough_bytes(sharing: Sharing) -> None:
    future = sharing.fetch(wait_ms=10_000, min_bytes=150)
    sharing.hosting.append("q", b"x" * 50)
    sharing.hosting.spin()
    assert not future.done()
    sharing.hosting.append("q", b"x" * 50)
    sharing.hosting.spin()
    assert sharing.got(future) == [(0, 0, 1, 1)]


def test_a_fetch_returns_fewer_bytes_when_its_time_has_passed(sharing: Sharing) -> None:
    future = sharing.fetch(wait_ms=1_000, min_bytes=10_000)
    sharing.hosting.append("q", b"x")
    sharing.hosting.advance(1_000)
    assert sharing.got(future) == [(0, 0, 0, 1)]


def test_a_fetch_that_is_cancelled_acquires_nothing(sharing: Sharing) -> None:
    future = sharing.fetch("gone", wait_ms=10_000)
    future.cancel()
    sharing.hosting.spin()
    sharing.hosting.append("q", b"x")
    sharing.hosting.spin()
    assert sharing.got(sharing.fetch("here")) == [(0, 0, 0, 1)]
    assert sharing.hosting.replicas.delayed_fetches.watched == 0


def test_only_the_record_batches_acquired_are_sent(sharing: Sharing) -> None:
    for value in (b"a", b"b", b"c"):
        sharing.hosting.append("q", value)
    sharing.got(sharing.fetch("one", max_records=1, strict=True))
    whole = sharing.hosting.replicas.partition("q", 0).log.read(0, 1 << 20, max_offset=3).size
    future = sharing.fetch("two", max_records=1, strict=True)
    assert sharing.got(future) == [(0, 1, 1, 1)]
    assert future.result()[sharing.id()].records.size == whole // 3


def test_partitions_take_turns(sharing: Sharing) -> None:
    for index in (0, 1):
        sharing.hosting.append("q", b"x", index=index)
    assert sharing.got(sharing.fetch("a", 0, 1, max_records=1, epoch=3)) == [(1, 0, 0, 1)]
    assert sharing.got(sharing.fetch("b", 0, 1, max_records=1, epoch=4)) == [(0, 0, 0, 1)]


def test_a_log_start_above_the_window_is_noticed_by_the_next_fetch(sharing: Sharing) -> None:
    for _ in range(3):
        sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.outcome(sharing.acknowledge(0, 2, RELEASE))
    sharing.hosting.replicas.partition("q", 0).log.delete_records_before(2)
    assert sharing.got(sharing.fetch()) == [], "it is noticed"
    assert sharing.got(sharing.fetch()) == [(0, 2, 2, 2)]


def test_a_partition_that_another_broker_leads_is_rejected(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    waiting = sharing.fetch("w", wait_ms=10_000)
    sharing.hosting.change(Uuid(sharing.topic_id), leader=2)
    sharing.hosting.spin()
    assert not waiting.done() or sharing.errors(waiting) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert sharing.errors(sharing.fetch()) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(sharing.manager) == 0
    waiting.cancel()


def test_a_new_leader_epoch_is_a_new_share_partition(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.hosting.change(Uuid(sharing.topic_id), leader=1)
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)], (
        "nothing was persisted: it is delivered as for the first time"
    )
    assert sharing.shared.leader_epoch == 1


# -- acknowledging -------------------------------------------------------------------------------------------------------


def test_an_acknowledgement_writes_its_changes(sharing: Sharing) -> None:
    for _ in range(3):
        sharing.hosting.append("q", b"x", b"y")
    sharing.got(sharing.fetch())
    assert sharing.outcome(sharing.acknowledge(2, 3)) is ErrorCode.NONE
    assert sharing.outcome(sharing.acknowledge(0, 1, ACCEPT, RELEASE)) is ErrorCode.NONE
    assert sharing.persister.written == [
        StateWrite(1, 0, 0, 2, (StateBatch(2, 3, 2, 1),)),
        StateWrite(1, 0, 0, 3, (StateBatch(0, 0, 2, 1), StateBatch(1, 1, 0, 1))),
    ]


def test_acquired_and_acknowledged_records_are_counted(sharing: Sharing) -> None:
    sharing.hosting.append("q", *[b"x"] * 5)
    sharing.got(sharing.fetch())
    sharing.outcome(sharing.acknowledge(0, 1))
    sharing.outcome(sharing.acknowledge(2, 4, ACCEPT, RELEASE, 0))
    sharing.outcome(sharing.acknowledge(0, 4))
    assert sharing.manager.records_acquired == 5
    assert sharing.manager.records_acknowledged == {ACCEPT: 3, RELEASE: 1, 0: 1}


def test_the_answer_waits_for_the_write(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.waits = True
    future = sharing.acknowledge(0, 0)
    assert not future.done()
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.outcome(future) is ErrorCode.NONE


def test_a_write_that_fails_changes_nothing(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    sharing.persister.error = None
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.NONE


def test_a_fenced_write_ends_the_share_partition(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.error = ErrorCode.FENCED_STATE_EPOCH
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(sharing.manager) == 0
    sharing.persister.error = None
    assert sharing.got(sharing.fetch("n")) == [(0, 0, 0, 1)]


def test_an_expired_lock_wakes_a_waiting_fetch(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch("holder"))
    waiting = sharing.fetch("waiter", wait_ms=60_000)
    sharing.hosting.advance(LOCK_MS - 1)
    assert not waiting.done()
    sharing.hosting.advance(1)
    assert sharing.got(waiting) == [(0, 0, 0, 2)]
    assert sharing.persister.written[-1].batches == ((0, 0, 0, 1),)
    assert sharing.outcome(sharing.acknowledge(0, 0, member="holder")) is ErrorCode.INVALID_RECORD_STATE


def test_a_lock_given_later_with_a_shorter_time_is_watched_first(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch("slow"))
    sharing.settings.values["share.record.lock.duration.ms"] = 1_000
    sharing.hosting.append("q", b"y")
    assert sharing.got(sharing.fetch("fast")) == [(0, 1, 1, 1)]
    sharing.hosting.advance(1_000)
    assert sharing.got(sharing.fetch("other")) == [(0, 1, 1, 2)]
    sharing.hosting.advance(LOCK_MS)
    assert sharing.got(sharing.fetch("other"))[0][1] == 0


# -- transactions --------------------------------------------------------------------------------------------------------


def transactional(sharing: Sharing, producer_id: int, sequence: int, *values: bytes) -> None:
    view = batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    sharing.hosting.replicas.append("q", 0, view, -1, AppendOrigin.COORDINATOR)


def end(sharing: Sharing, producer_id: int, *, committed: bool) -> None:
    marker = build_end_transaction_marker(
        commit=committed,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=sharing.hosting.now_ms(),
    )
    sharing.hosting.replicas.append("q", 0, memoryview(bytearray(marker)), -1, AppendOrigin.COORDINATOR)


def test_aborted_records_are_not_delivered_with_read_committed(sharing: Sharing) -> None:
    sharing.settings.values["share.isolation.level"] = "read_committed"
    transactional(sharing, 7, 0, b"a", b"b")  # 0, 1: aborted
    transactional(sharing, 8, 0, b"c")  # 2: committed
    assert sharing.got(sharing.fetch()) == [], "both are open"
    end(sharing, 7, committed=False)  # 3
    assert sharing.got(sharing.fetch()) == [], "up to the open transaction there are aborted records only"
    end(sharing, 8, committed=True)  # 4
    sharing.hosting.append("q", b"d")  # 5
    given = sharing.got(sharing.fetch())
    offsets = {offset for _, first, last, _ in given for offset in range(first, last + 1)}
    assert offsets == {2, 3, 4, 5}, "markers go along, as gaps that the client acknowledges"
    sharing.outcome(sharing.acknowledge(2, 5, ACCEPT, 0, 0, ACCEPT))
    assert sharing.shared.window is not None
    assert sharing.shared.window.start_offset == 6, "the aborted ones are finished too"


def test_a_window_full_of_aborted_records_moves_on(sharing: Sharing) -> None:
    sharing.settings.values |= {"share.isolation.level": "read_committed", "share.partition.max.record.locks": 4}
    for sequence in range(6):
        transactional(sharing, 7, sequence, b"aborted")
    end(sharing, 7, committed=False)
    sharing.hosting.append("q", b"good")  # 7
    given = [sharing.got(sharing.fetch(max_records=2)) for _ in range(5)]
    assert (0, 6, 7, 1) in [(index, *each) for found in given for index, *each in found], given


def test_open_transactions_are_delivered_with_read_uncommitted(sharing: Sharing) -> None:
    transactional(sharing, 7, 0, b"a")
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)]


# -- a persister that is late, and clients that leave ----------------------------------------------------------------------


@pytest.mark.parametrize("bug", [ValueError("a bug"), RuntimeError("a bug")])
def test_a_bug_while_a_state_is_read_fails_the_fetch_and_the_next_fetch_reads_again(
    sharing: Sharing, bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    sharing.hosting.append("q", b"x")
    sharing.persister.waits = True
    future = sharing.fetch(wait_ms=1_000)
    sharing.persister.go_on(bug)
    sharing.hosting.advance(1_000)
    assert sharing.errors(future) == {0: ErrorCode.UNKNOWN_SERVER_ERROR}
    assert "a bug" in caplog.text
    sharing.persister.error = None
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)]


def test_a_lock_ends_after_a_write_that_failed_while_the_timer_of_another_ended(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)]
    sharing.hosting.advance(10_000)
    sharing.hosting.append("q", b"y")
    assert sharing.got(sharing.fetch()) == [(0, 1, 1, 1)]
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.NONE
    sharing.hosting.advance(LOCK_MS - 11_000)
    sharing.persister.waits = True
    acknowledged = sharing.acknowledge(1, 1)
    sharing.hosting.advance(2_000)
    sharing.persister.go_on(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    sharing.hosting.spin()
    assert sharing.outcome(acknowledged) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    sharing.persister.error = None
    assert sharing.got(sharing.fetch("other")) == [], "the member still holds it"
    sharing.hosting.advance(LOCK_MS)
    assert sharing.got(sharing.fetch("other")) == [(0, 1, 1, 2)]


def test_a_state_is_read_to_its_end_although_the_client_left(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.persister.waits = True
    leaves, stays = sharing.fetch("leaves", wait_ms=1_000), sharing.fetch("stays", wait_ms=1_000)
    leaves.cancel()
    sharing.hosting.spin()
    assert leaves.cancelled()
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.got(stays) == [(0, 0, 0, 1)]


def test_a_share_partition_that_is_fenced_while_its_state_is_read_is_not_led_here(sharing: Sharing) -> None:
    sharing.persister.waits = True
    future = sharing.fetch(wait_ms=1_000)
    sharing.manager.topics_deleted([sharing.topic_id])
    sharing.persister.go_on()
    sharing.hosting.advance(1_000)
    assert sharing.errors(future) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (TypeError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_write_that_fails_late_is_answered_and_gives_the_records_back(
    sharing: Sharing, error: ErrorCode | Exception, code: ErrorCode
) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.waits = True
    future = sharing.acknowledge(0, 0)
    sharing.persister.go_on(error)
    sharing.hosting.spin()
    assert sharing.outcome(future) is code
    sharing.persister.error = None
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.NONE, "the member holds the record again"
    assert sharing.manager.records_acknowledged == {ACCEPT: 1}


def test_an_acknowledgement_is_settled_although_the_client_left(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.waits = True
    future = sharing.acknowledge(0, 0)
    future.cancel()
    sharing.hosting.spin()
    assert future.cancelled()
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.shared.window is not None
    assert sharing.shared.window.start_offset == 1
    assert sharing.manager.records_acknowledged == {ACCEPT: 1}


def test_a_fenced_write_ends_the_share_partition_although_the_client_left(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.waits = True
    sharing.acknowledge(0, 0).cancel()
    sharing.persister.go_on(ErrorCode.FENCED_STATE_EPOCH)
    sharing.hosting.spin()
    assert len(sharing.manager) == 0


def open_session(sharing: Sharing, member: str = "m") -> None:
    sharing.manager.sessions.open("g", member, [(sharing.id(), "q")], f"connection of {member}")


def test_a_closed_connection_releases_records_for_a_waiting_fetch(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    open_session(sharing)
    open_session(sharing, "other")
    sharing.got(sharing.fetch())
    waiting = sharing.fetch("other", wait_ms=1_000)
    sharing.persister.waits = True
    sharing.manager.sessions.connection_closed("connection of m")
    sharing.hosting.spin()
    assert not waiting.done(), "the release is not written yet"
    sharing.persister.go_on()
    sharing.hosting.spin()
    assert sharing.got(waiting) == [(0, 0, 0, 2)]


def test_a_release_that_is_fenced_ends_the_share_partition(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    open_session(sharing)
    open_session(sharing, "other")
    sharing.got(sharing.fetch())
    sharing.persister.error = ErrorCode.FENCED_LEADER_EPOCH
    sharing.manager.sessions.connection_closed("connection of m")
    assert len(sharing.manager) == 0


def test_an_expiry_that_cannot_be_written_holds_all_the_same(
    sharing: Sharing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.persister.error = ErrorCode.NOT_COORDINATOR
    sharing.hosting.advance(LOCK_MS)
    assert "was not persisted" in caplog.text
    assert sharing.got(sharing.fetch("other")) == [(0, 0, 0, 2)]


def test_acknowledged_records_are_counted_by_their_number(sharing: Sharing) -> None:
    sharing.hosting.append("q", *[b"x"] * 6)
    sharing.got(sharing.fetch())
    assert sharing.outcome(sharing.acknowledge(3, 5)) is ErrorCode.NONE
    assert sharing.manager.records_acknowledged == {ACCEPT: 3}


def test_all_partitions_share_the_limit_of_records(sharing: Sharing) -> None:
    sharing.fetch("m", 0, 1)
    for index in (0, 1):
        sharing.hosting.append("q", b"x", b"y", index=index)
    got = sharing.got(sharing.fetch("m", 0, 1, max_records=3, strict=True, epoch=2))
    assert got == [(0, 0, 1, 1), (1, 0, 0, 1)]


def test_records_given_out_again_have_a_new_lock(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x", b"y", b"z")
    sharing.got(sharing.fetch("a"))
    sharing.hosting.advance(LOCK_MS // 2)
    assert sharing.outcome(sharing.acknowledge(0, 2, RELEASE, ACCEPT, RELEASE, member="a")) is ErrorCode.NONE
    assert sharing.got(sharing.fetch("b", max_records=2, strict=True)) == [(0, 0, 0, 2), (0, 2, 2, 2)]
    waiting = sharing.fetch("c", wait_ms=60_000)
    sharing.hosting.advance(LOCK_MS - 1)
    assert not waiting.done()
    sharing.hosting.advance(1)
    assert sharing.got(waiting) == [(0, 0, 0, 3), (0, 2, 2, 3)]


def test_exactly_the_wanted_bytes_are_enough(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    assert sharing.got(sharing.fetch(wait_ms=1_000, min_bytes=len(batch(b"x")))) == [(0, 0, 0, 1)]


def test_an_error_comes_with_empty_records(sharing: Sharing) -> None:
    sharing.persister.error = ErrorCode.NOT_COORDINATOR
    ((partition_id, data),) = sharing.fetch("m", 1).result().items()
    assert (partition_id.partition, data.partition_index, data.records) == (1, 1, b"")


@pytest.mark.parametrize(("count", "rejected"), [(5, False), (4, True), (1, True)])
def test_letters_that_a_crash_may_have_cut_off_are_written_again(sharing: Sharing, count: int, rejected: bool) -> None:
    asked: list[tuple[int, int, int, bool]] = []

    class Letters:
        def is_enabled(self, group_id: str) -> bool:
            return True

        async def write(
            self, group_id: str, source: Any, first: int, last: int, delivery_count: int, *, rejected: bool
        ) -> None:
            asked.append((first, last, delivery_count, rejected))

    sharing.manager.settings.dead_letters = Letters()
    sharing.hosting.append("q", b"x", b"y", b"z")
    sharing.persister.state = state(0, (0, 1, 3, count))
    assert sharing.got(sharing.fetch()) == [(0, 2, 2, 1)]
    assert asked == [(0, 1, count, rejected)], "all deliveries used up: not rejected"
