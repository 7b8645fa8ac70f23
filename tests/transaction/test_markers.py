"""Writing markers: every partition gets one, retries, deleted topics, fencing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import check_batch
from barnabas.steps import start
from barnabas.transaction.marker_writer import LocalMarkerWriter, Marker
from barnabas.transaction.markers import RETRY_BACKOFF_MS, TransactionMarkers, Written
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState
from barnabas.turns import TURN, WRITE
from tests.coordinator.virtual_loop import VirtualLoop


class Partitions:
    """`MarkerWriter` that answers as told."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.missing: set[tuple[str, int]] = set()
        self.errors: dict[tuple[str, int], ErrorCode] = {}
        self.written: list[tuple[str, int]] = []
        self.markers: set[Marker] = set()
        self.held: list[asyncio.Future[Any]] | None = None
        self.dropped: list[int] = []

    def drop(self, producer_id: int) -> None:
        self.dropped.append(producer_id)

    def exists(self, partition: tuple[str, int]) -> bool:
        return partition not in self.missing

    async def write(self, marker: Marker, partition: tuple[str, int]) -> None:
        self.markers.add(marker)
        if partition in self.errors:
            raise KafkaError(self.errors[partition])
        self.written.append(partition)
        if self.held is not None:
            self.held.append(self.loop.create_future())
            await self.held[-1]


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.partitions = Partitions(self.loop)
        self.markers = TransactionMarkers(self.partitions, self.loop)
        self.epoch = 7

    def end(self, *partitions: tuple[str, int], commit: bool = True) -> asyncio.Future[Written]:
        metadata = TransactionMetadata(
            "tx",
            5,
            4,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            partitions=frozenset(partitions),
            client_transaction_version=2,
        )
        return start(self.markers.write(3, lambda: self.epoch, metadata), self.loop)


def test_every_partition_gets_a_marker() -> None:
    subject = Subject()
    ended = subject.end(("t", 0), ("t", 1), ("u", 0), commit=False)
    assert subject.partitions.written == [("t", 0), ("t", 1), ("u", 0)]
    assert subject.partitions.markers == {Marker(5, 4, 7, False, 2)}
    assert ended.result() is Written.EVERYWHERE


def test_without_partitions_the_markers_are_written_at_once() -> None:
    assert Subject().end().result() is Written.EVERYWHERE


def test_the_writing_ends_when_the_last_marker_is_committed() -> None:
    subject = Subject()
    subject.partitions.held = []
    ended = subject.end(("t", 0), ("t", 1))
    subject.partitions.held[1].set_result(None)
    subject.loop.run_ready()
    assert not ended.done()
    subject.partitions.held[0].set_result(None)
    subject.loop.run_ready()
    assert ended.result() is Written.EVERYWHERE


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_a_marker_that_cannot_be_written_now_is_retried(error: ErrorCode) -> None:
    subject = Subject()
    subject.partitions.errors["t", 1] = error
    ended = subject.end(("t", 0), ("t", 1))
    subject.loop.advance(RETRY_BACKOFF_MS * 3)
    assert not ended.done()
    assert subject.partitions.written == [("t", 0)], "a marker that is written is not written again"
    subject.partitions.errors.clear()
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert ended.result() is Written.EVERYWHERE


def test_a_deleted_topic_needs_no_marker() -> None:
    subject = Subject()
    subject.partitions.errors["t", 1] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ended = subject.end(("t", 0), ("t", 1))
    subject.partitions.missing.add(("t", 1))
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert ended.result() is Written.EVERYWHERE


@pytest.mark.parametrize("error", [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION])
def test_a_log_without_support_for_markers_needs_none(error: ErrorCode) -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = error
    assert subject.end(("t", 0), ("t", 1)).result() is Written.EVERYWHERE


def test_a_partition_with_a_newer_epoch_needs_no_marker_and_the_others_get_theirs() -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = ErrorCode.INVALID_PRODUCER_EPOCH
    assert subject.end(("t", 0), ("t", 1)).result() is Written.OVERTAKEN
    assert subject.partitions.written == [("t", 1)]


def test_a_transaction_that_a_newer_coordinator_fences_is_given_up() -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert subject.end(("t", 0), ("t", 1)).result() is Written.GIVEN_UP
    assert subject.partitions.written == []
    assert repr(subject.markers) == "<TransactionMarkers transactions=0>"


def test_a_coordinator_that_has_moved_stops_writing() -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ended = subject.end(("t", 0))
    subject.markers.forget(3)
    subject.partitions.errors.clear()
    subject.loop.advance(RETRY_BACKOFF_MS * 2)
    assert subject.partitions.written == []
    assert ended.result() is Written.GIVEN_UP
    assert subject.partitions.dropped == [5], "what waits for another broker is not sent"


def test_a_marker_that_is_fenced_in_an_older_epoch_of_the_coordinator_is_tried_in_the_new_one() -> None:
    subject = Subject()
    write = subject.partitions.write

    async def elected_meanwhile(marker: Marker, partition: tuple[str, int]) -> None:
        if marker.coordinator_epoch < 9:
            subject.epoch = 9
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        await write(marker, partition)

    subject.partitions.write = elected_meanwhile  # type: ignore[method-assign]
    ended = subject.end(("t", 0))
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.partitions.markers == {Marker(5, 4, 9, True, 2)}
    assert ended.result() is Written.EVERYWHERE


def test_other_partitions_of_the_coordinator_continue() -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ended = subject.end(("t", 0))
    subject.markers.forget(4)
    subject.partitions.errors.clear()
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert ended.result() is Written.EVERYWHERE


def test_a_newer_decision_for_an_id_replaces_the_older() -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    older, newer = subject.end(("t", 0), commit=False), subject.end(("t", 0))
    subject.partitions.errors.clear()
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert (older.result(), newer.result()) == (Written.GIVEN_UP, Written.EVERYWHERE)
    assert len(subject.partitions.written) == 1


def test_a_very_large_transaction_gives_the_loop_turns() -> None:
    subject = Subject()
    in_a_turn = TURN // WRITE
    partitions = [("t", index) for index in range(2 * in_a_turn + 1)]
    ended = subject.end(*partitions)
    assert len(subject.partitions.written) == in_a_turn + 1
    subject.loop.run_ready()
    assert sorted(subject.partitions.written) == partitions
    assert ended.result() is Written.EVERYWHERE


def test_an_exception_in_the_writer_reaches_the_caller() -> None:
    subject = Subject()

    async def broken(marker: Marker, partition: tuple[str, int]) -> None:
        raise ValueError("a bug")

    subject.partitions.write = broken  # type: ignore[method-assign]
    assert isinstance(subject.end(("t", 0)).exception(), ValueError)
    assert repr(subject.markers) == "<TransactionMarkers transactions=0>"


class TestLocal:
    """Markers into this node's replicas, and those of the group coordinator."""

    def test_a_marker_is_written_by_the_owner_of_its_partition(self) -> None:
        loop = VirtualLoop()
        appended: list[Any] = []
        settled: list[Any] = []
        limits: set[int | None] = set()

        class Replicas:
            def append_internal(
                self,
                topic: str,
                index: int,
                batch: bytearray,
                *,
                guard: Any = None,
                transaction_version: int = 0,
                timeout_ms: int | None = None,
            ) -> asyncio.Future[int]:
                limits.add(timeout_ms)
                if topic == "gone":
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                (record,) = iter_records(batch)
                outcome = control_type(record.key)
                appended.append((topic, index, check_batch(batch, 0).producer_epoch, outcome, transaction_version))
                return loop.create_future()

            def read_internal(self, topic: str, index: int, from_offset: int) -> Any:
                raise AssertionError

        class Groups:
            def complete_transaction(self, partition: int, marker: Marker, batch: bytearray) -> asyncio.Future[None]:
                settled.append((partition, marker.commit, check_batch(batch, 0).is_control))
                return loop.create_future()

        writer = LocalMarkerWriter(
            Replicas(),
            Groups(),
            now_ms=lambda: 5,
            exists=lambda partition: True,
            commit_timeout_ms=30_000,
        )
        marker = Marker(5, 4, 7, True, 2)
        start(writer.write(marker, ("t", 1)), loop)
        start(writer.write(marker, ("__consumer_offsets", 2)), loop)
        refused = start(writer.write(marker, ("gone", 0)), loop)
        start(writer.write(Marker(5, 4, 7, False, 2), ("t", 0)), loop)
        assert appended == [("t", 1, 4, ControlRecordType.COMMIT, 2), ("t", 0, 4, ControlRecordType.ABORT, 2)]
        assert settled == [(2, True, True)]
        assert limits == {30_000}
        error = refused.exception()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
