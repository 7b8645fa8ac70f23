"""Writing markers: all of them, again when they must wait, not where there is nothing, and not any more when they are fenced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import check_batch
from barnabas.transaction.marker_writer import LocalMarkerWriter, Marker
from barnabas.transaction.markers import MARKERS_PER_TURN, RETRY_BACKOFF_MS, TransactionMarkers
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState
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

    def exists(self, partition: tuple[str, int]) -> bool:
        return partition not in self.missing

    def write(self, marker: Marker, partition: tuple[str, int]) -> asyncio.Future[Any]:
        future = self.loop.create_future()
        self.markers.add(marker)
        if partition in self.errors:
            future.set_exception(KafkaError(self.errors[partition]))
            return future
        self.written.append(partition)
        if self.held is None:
            future.set_result(None)
        else:
            self.held.append(future)
        return future


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.partitions = Partitions(self.loop)
        self.done: list[tuple[int, int, str]] = []
        self.markers = TransactionMarkers(
            self.partitions,
            self.loop,
            lambda partition, epoch, metadata: self.done.append((partition, epoch, metadata.transactional_id)),
        )

    def end(self, *partitions: tuple[str, int], commit: bool = True, transactional_id: str = "tx") -> None:
        metadata = TransactionMetadata(
            transactional_id,
            5,
            4,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            partitions=frozenset(partitions),
            client_transaction_version=2,
        )
        self.markers.end(3, 7, metadata)


def test_every_partition_gets_one() -> None:
    subject = Subject()
    subject.end(("t", 0), ("t", 1), ("u", 0), commit=False)
    assert subject.partitions.written == [("t", 0), ("t", 1), ("u", 0)]
    assert subject.partitions.markers == {Marker(5, 4, 7, False, 2)}
    assert subject.done == [(3, 7, "tx")]


def test_without_partitions_it_is_done_at_once() -> None:
    subject = Subject()
    subject.end()
    assert subject.done == [(3, 7, "tx")]


def test_it_is_done_when_the_last_is_committed() -> None:
    subject = Subject()
    subject.partitions.held = []
    subject.end(("t", 0), ("t", 1))
    subject.partitions.held[1].set_result(None)
    subject.loop.run_ready()
    assert subject.done == []
    subject.partitions.held[0].set_result(None)
    subject.loop.run_ready()
    assert subject.done == [(3, 7, "tx")]


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
def test_what_passes_is_tried_again(error: ErrorCode) -> None:
    subject = Subject()
    subject.partitions.errors["t", 1] = error
    subject.end(("t", 0), ("t", 1))
    subject.loop.advance(RETRY_BACKOFF_MS * 3)
    assert subject.done == []
    assert subject.partitions.written == [("t", 0)], "what was written is not written again"
    subject.partitions.errors.clear()
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.done == [(3, 7, "tx")]


def test_a_topic_that_is_gone_needs_none() -> None:
    subject = Subject()
    subject.partitions.errors["t", 1] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    subject.end(("t", 0), ("t", 1))
    subject.partitions.missing.add(("t", 1))
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.done == [(3, 7, "tx")]


@pytest.mark.parametrize("error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_fenced_one_is_given_up(error: ErrorCode) -> None:
    subject = Subject()
    subject.partitions.errors["t", 0] = error
    subject.end(("t", 0), ("t", 1))
    subject.loop.advance(RETRY_BACKOFF_MS * 2)
    assert subject.done == []
    assert repr(subject.markers) == "TransactionMarkers(0 transactions)"


def test_a_coordinator_that_has_moved_writes_no_more() -> None:
    for forget in (lambda subject: subject.markers.forget(3), lambda subject: subject.markers.close()):
        subject = Subject()
        subject.partitions.errors["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        subject.end(("t", 0))
        forget(subject)
        subject.partitions.errors.clear()
        subject.loop.advance(RETRY_BACKOFF_MS * 2)
        assert (subject.partitions.written, subject.done) == ([], [])


def test_a_very_large_transaction_takes_turns() -> None:
    subject = Subject()
    partitions = [("t", index) for index in range(2 * MARKERS_PER_TURN + 1)]
    subject.end(*partitions)
    assert len(subject.partitions.written) == MARKERS_PER_TURN
    subject.loop.run_ready()
    assert sorted(subject.partitions.written) == partitions
    assert subject.done == [(3, 7, "tx")]


class TestLocal:
    """Markers into this node's replicas, and those of the group coordinator."""

    def test_where_a_marker_goes(self) -> None:
        loop = VirtualLoop()
        appended: list[Any] = []
        settled: list[Any] = []

        class Replicas:
            def append_internal(
                self, topic: str, index: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
            ) -> asyncio.Future[int]:
                if topic == "gone":
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                appended.append((topic, index, check_batch(batch, 0).producer_epoch, transaction_version))
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
            "__consumer_offsets",
            create_future=loop.create_future,
            now_ms=lambda: 5,
            exists=lambda partition: True,
        )
        marker = Marker(5, 4, 7, True, 2)
        writer.write(marker, ("t", 1))
        writer.write(marker, ("__consumer_offsets", 2))
        refused = writer.write(marker, ("gone", 0))
        assert appended == [("t", 1, 4, 2)]
        assert settled == [(2, True, True)]
        error = refused.exception()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
