"""A share partition with its fetches, over real logs in virtual time, and a persister that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.append_checks import AppendOrigin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid
from barnabas.records.control import build_end_transaction_marker
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.records import Acknowledgement
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import PersistedState, ShareSettings, duration_ms
from barnabas.share.share_partition import SharePartition
from barnabas.share.share_partition_manager import SharePartitionManager
from tests.replication.hosting import Hosting, batch

ACCEPT, RELEASE, REJECT = 1, 2, 3
LOCK_MS = 30_000


class Persister:
    """Keeps the writes, and answers at once unless told to wait or to fail."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.state = PersistedState(1, 0, ())
        self.written: list[dict[str, Any]] = []
        self.error: ErrorCode | None = None
        self.waits = False
        self.waiting: list[tuple[asyncio.Future[Any], Any]] = []

    def _answer(self, value: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        if self.waits:
            self.waiting.append((future, value))
        elif self.error is not None:
            future.set_exception(KafkaError(self.error))
        else:
            future.set_result(value)
        return future

    def read_state(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int
    ) -> asyncio.Future[PersistedState]:
        return self._answer(self.state)

    def write_state(self, group_id: str, topic_id: bytes, partition: int, **write: Any) -> asyncio.Future[None]:
        self.written.append(write)
        return self._answer(None)

    def go_on(self, error: ErrorCode | None = None) -> None:
        self.waits = False
        waiting, self.waiting = self.waiting, []
        for future, value in waiting:
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(KafkaError(error))


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
        return self.values[name]

    def int_value(self, group_id: str, name: str) -> int:
        return int(self.values[name])


class Sharing:
    """The share partitions of one broker with one topic `q`."""

    def __init__(self, root: Path) -> None:
        self.hosting = Hosting(root)
        self.topic_id = bytes(self.hosting.create_topic("q", 2))
        self.persister = Persister(self.hosting.loop)
        self.settings = Settings()
        self.manager = SharePartitionManager(
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
        return self.manager.fetch(params, [self.id(index) for index in indexes or (0,)], epoch)

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
        future = self.manager.acknowledge("g", member, {self.id(): [Acknowledgement(first, last, types or (ACCEPT,))]})
        return future

    def outcome(self, future: asyncio.Future[Any]) -> ErrorCode:
        error = future.result()[self.id()]
        return ErrorCode.NONE if error is None else error.code

    @property
    def shared(self) -> SharePartition:
        (found,) = self.manager._partitions.values()
        return found


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Sharing]:
    made = Sharing(tmp_path)
    yield made
    made.manager.close()
    made.hosting.close()


# -- beginning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", None), ("by_duration:PT1H", 1)])
def test_where_a_group_begins(sharing: Sharing, reset: str, first: int | None) -> None:
    now = sharing.hosting.now_ms()
    sharing.settings.values["share.auto.offset.reset"] = reset
    sharing.persister.state = PersistedState(1, -1, ())
    sharing.hosting.append("q", b"old", timestamp=now - 7_200_000)
    sharing.hosting.append("q", b"new", timestamp=now - 60_000)
    got = sharing.got(sharing.fetch())
    assert got == ([] if first is None else [(0, first, 1, 1)])


@pytest.mark.parametrize(
    ("text", "ms"),
    [("PT1H", 3_600_000), ("P1D", 86_400_000), ("PT1.5S", 1_500), ("P2DT3H4M", 183_840_000), ("-PT1M", -60_000)],
)
def test_durations(text: str, ms: int) -> None:
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
    ("error", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_state_that_cannot_be_read(sharing: Sharing, error: ErrorCode, told: ErrorCode) -> None:
    sharing.persister.error = error
    assert sharing.errors(sharing.fetch()) == {0: told}
    sharing.persister.error = None
    sharing.hosting.append("q", b"x")
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)], "the next fetch tries again"


def test_a_state_that_is_no_state(sharing: Sharing) -> None:
    sharing.persister.state = PersistedState(1, 5, [(3, 4, 0, 1)])
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


def test_time_is_up_with_fewer_bytes(sharing: Sharing) -> None:
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


def test_a_log_that_begins_later(sharing: Sharing) -> None:
    for _ in range(3):
        sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch())
    sharing.outcome(sharing.acknowledge(0, 2, RELEASE))
    sharing.hosting.replicas.partition("q", 0).log.delete_records_before(2)
    assert sharing.got(sharing.fetch()) == [], "it is noticed"
    assert sharing.got(sharing.fetch()) == [(0, 2, 2, 2)]


def test_a_partition_led_elsewhere(sharing: Sharing) -> None:
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


def test_what_is_written_down(sharing: Sharing) -> None:
    for _ in range(3):
        sharing.hosting.append("q", b"x", b"y")
    sharing.got(sharing.fetch())
    assert sharing.outcome(sharing.acknowledge(2, 3)) is ErrorCode.NONE
    assert sharing.outcome(sharing.acknowledge(0, 1, ACCEPT, RELEASE)) is ErrorCode.NONE
    assert sharing.persister.written == [
        {
            "state_epoch": 1,
            "leader_epoch": 0,
            "start_offset": 0,
            "delivery_complete_count": 2,
            "batches": [(2, 3, 2, 1)],
        },
        {
            "state_epoch": 1,
            "leader_epoch": 0,
            "start_offset": 0,
            "delivery_complete_count": 3,
            "batches": [(0, 0, 2, 1), (1, 1, 0, 1)],
        },
    ]


def test_what_is_counted(sharing: Sharing) -> None:
    sharing.hosting.append("q", *[b"x"] * 5)
    sharing.got(sharing.fetch())
    sharing.outcome(sharing.acknowledge(0, 1))
    sharing.outcome(sharing.acknowledge(2, 4, ACCEPT, RELEASE, 0))
    sharing.outcome(sharing.acknowledge(0, 4))
    assert sharing.manager.records_acquired == 5
    assert sharing.manager.records_acknowledged == {ACCEPT: 3, RELEASE: 1, 0: 1}
    assert len(sharing.got(sharing.fetch("other"))) == 1
    assert sharing.manager.records_acquired == 6


def test_all_partitions_share_the_limit_of_records(sharing: Sharing) -> None:
    for index in (0, 1):
        sharing.hosting.append("q", b"x", b"y", index=index)
    assert sharing.got(sharing.fetch("m", 0, 1, max_records=3, strict=True, epoch=0)) == [(0, 0, 1, 1)]
    assert sharing.got(sharing.fetch("m", 0, 1, max_records=3, strict=True, epoch=0)) == [(1, 0, 1, 1)]
    for index in (0, 1):
        sharing.hosting.append("q", b"x", b"y", index=index)
    got = sharing.got(sharing.fetch("n", 0, 1, max_records=3, strict=True, epoch=2))
    assert got == [(0, 2, 3, 1), (1, 2, 2, 1)]


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


def test_an_answer_names_its_partition(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x", index=1)
    ((partition_id, data),) = sharing.fetch("m", 1).result().items()
    assert (partition_id, data.partition_index) == (sharing.id(1), 1)


@pytest.mark.parametrize("limit", ["max_records", "max_bytes"])
def test_who_asks_for_nothing_gets_nothing(sharing: Sharing, limit: str) -> None:
    sharing.hosting.append("q", b"x")
    assert sharing.fetch(**{limit: 0}).result() == {}
    assert len(sharing.manager) == 0


class TestRelease:
    """What a member holds is given back when its session ends."""

    @pytest.fixture
    def held(self, sharing: Sharing) -> Sharing:
        sharing.hosting.append("q", b"x")
        sharing.manager.sessions.open("g", "m", [(sharing.id(0), "q"), (sharing.id(1), "q")], "connection")
        assert sharing.got(sharing.fetch("m")) == [(0, 0, 0, 1)]
        return sharing

    def test_others_get_it_at_once(self, held: Sharing) -> None:
        waiting = held.fetch("n", wait_ms=1_000)
        released = held.manager.release_session("g", "m")
        assert released.result() == {held.id(0): None}
        held.hosting.spin()
        assert held.got(waiting) == [(0, 0, 0, 2)]
        assert held.persister.written[-1]["batches"] == [(0, 0, 0, 1)]

    def test_what_others_hold_stays_theirs(self, held: Sharing) -> None:
        held.hosting.append("q", b"y")
        assert held.got(held.fetch("n")) == [(0, 1, 1, 1)]
        held.manager.release_session("g", "m")
        assert held.outcome(held.acknowledge(1, 1, member="n")) is ErrorCode.NONE

    def test_the_answer_waits_for_the_write(self, held: Sharing) -> None:
        held.persister.waits = True
        released = held.manager.release_session("g", "m")
        assert not released.done()
        held.persister.go_on()
        held.hosting.spin()
        assert released.result() == {held.id(0): None}

    def test_a_fenced_write_ends_the_share_partition(self, held: Sharing) -> None:
        held.persister.error = ErrorCode.FENCED_LEADER_EPOCH
        error = held.manager.release_session("g", "m").result()[held.id(0)]
        assert error is not None
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(held.manager) == 0

    def test_without_a_session(self, held: Sharing) -> None:
        held.manager.release_session("g", "m")
        with pytest.raises(KafkaError) as refused:
            held.manager.release_session("g", "m")
        assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND

    def test_a_closed_connection_releases_too(self, held: Sharing) -> None:
        held.manager.sessions.open("g", "n", [], "another")
        held.manager.sessions.connection_closed("connection")
        assert held.got(held.fetch("n")) == [(0, 0, 0, 2)]

    def test_the_last_connection_of_a_group_ends_its_share_partitions(self, held: Sharing) -> None:
        held.manager.sessions.connection_closed("connection")
        assert len(held.manager) == 0


def test_deleted_topics_end_their_share_partitions(sharing: Sharing) -> None:
    sharing.got(sharing.fetch("m", 0, 1))
    sharing.manager.topics_deleted([b"other"])
    assert len(sharing.manager) == 2
    sharing.manager.topics_deleted([sharing.topic_id])
    assert len(sharing.manager) == 0


def test_an_unknown_partition_cannot_be_acknowledged(sharing: Sharing) -> None:
    assert sharing.outcome(sharing.acknowledge(0, 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Letters:
    """Dead letters that are written when the test says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.asked: list[tuple[int, int, int, bool]] = []
        self.done: list[asyncio.Future[None]] = []

    def is_enabled(self, group_id: str) -> bool:
        return True

    def write(
        self, group_id: str, source: Any, first: int, last: int, delivery_count: int, *, rejected: bool
    ) -> asyncio.Future[None]:
        assert (group_id, source.topic.name) == ("g", "q")
        self.asked.append((first, last, delivery_count, rejected))
        self.done.append(self.loop.create_future())
        return self.done[-1]


class TestDeadLetters:
    @pytest.fixture
    def letters(self, sharing: Sharing) -> Letters:
        letters = Letters(sharing.hosting.loop)
        sharing.manager.settings.dead_letters = letters
        return letters

    def finish(self, sharing: Sharing, letters: Letters) -> None:
        for future in letters.done:
            future.set_result(None)
        sharing.hosting.spin()

    def test_a_rejected_record_is_archived_when_its_letter_is_written(self, sharing: Sharing, letters: Letters) -> None:
        sharing.hosting.append("q", b"x", b"y")
        sharing.got(sharing.fetch())
        assert sharing.outcome(sharing.acknowledge(1, 1, REJECT)) is ErrorCode.NONE
        assert letters.asked == [(1, 1, 1, True)]
        assert sharing.persister.written[-1]["batches"] == [(1, 1, 3, 1)]
        self.finish(sharing, letters)
        assert sharing.persister.written[-1]["batches"] == [(1, 1, 4, 1)]

    def test_a_record_whose_deliveries_are_used_up(self, sharing: Sharing, letters: Letters) -> None:
        sharing.settings.values["share.delivery.count.limit"] = 2
        sharing.hosting.append("q", b"x")
        for _ in range(2):
            sharing.got(sharing.fetch())
            sharing.hosting.advance(LOCK_MS)
        assert letters.asked == [(0, 0, 2, False)]

    @pytest.mark.parametrize(("count", "rejected"), [(5, False), (4, True), (1, True)])
    def test_letters_that_a_crash_may_have_cut_off_are_written_again(
        self, sharing: Sharing, letters: Letters, count: int, rejected: bool
    ) -> None:
        sharing.hosting.append("q", b"x", b"y", b"z")
        sharing.persister.state = PersistedState(1, 0, ((0, 1, 3, count),))
        sharing.got(sharing.fetch())
        assert letters.asked == [(0, 1, count, rejected)]
        assert sharing.persister.written == []
        self.finish(sharing, letters)
        assert sharing.persister.written[-1]["batches"] == [(0, 1, 4, count)]
        assert sharing.shared.records is not None
        assert sharing.shared.records.start_offset == 2


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


def test_locks_run_out_and_wake_who_waits(sharing: Sharing) -> None:
    sharing.hosting.append("q", b"x")
    sharing.got(sharing.fetch("holder"))
    waiting = sharing.fetch("waiter", wait_ms=60_000)
    sharing.hosting.advance(LOCK_MS - 1)
    assert not waiting.done()
    sharing.hosting.advance(1)
    assert sharing.got(waiting) == [(0, 0, 0, 2)]
    assert sharing.persister.written[-1]["batches"] == [(0, 0, 0, 1)]
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


def test_aborted_records_are_not_delivered_to_who_reads_committed(sharing: Sharing) -> None:
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
    assert sharing.shared.records is not None
    assert sharing.shared.records.start_offset == 6, "the aborted ones are finished too"


def test_without_isolation_all_is_delivered(sharing: Sharing) -> None:
    transactional(sharing, 7, 0, b"a")
    assert sharing.got(sharing.fetch()) == [(0, 0, 0, 1)]
