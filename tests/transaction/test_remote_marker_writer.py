"""Markers for partitions that other brokers lead: requests by broker, leaders that move, answers that are lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import WriteTxnMarkersResponse
from barnabas.steps import start
from barnabas.transaction.marker_writer import Marker, TopicPartition
from barnabas.transaction.markers import RETRY_BACKOFF_MS, TransactionMarkers, Written
from barnabas.transaction.remote_marker_writer import ClusterMarkerWriter
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState
from tests.coordinator.other_brokers import OtherBrokers, Sent
from tests.coordinator.virtual_loop import VirtualLoop

NODE = 1
HERE, T0, T1, U0 = ("here", 0), ("t", 0), ("t", 1), ("u", 0)

_Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Partition = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class Local:
    """The partitions of this broker."""

    def __init__(self) -> None:
        self.written: list[tuple[Marker, TopicPartition]] = []
        self.gone: set[TopicPartition] = set()

    def exists(self, partition: TopicPartition) -> bool:
        return partition not in self.gone

    async def write(self, marker: Marker, partition: TopicPartition) -> None:
        self.written.append((marker, partition))

    def drop(self, producer_id: int) -> None:
        raise AssertionError("nothing waits here")


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.brokers = OtherBrokers(self.loop)
        self.local = Local()
        self.leaders = {HERE: NODE, T0: 2, T1: 2, U0: 3}
        self.epoch = 7
        self.writer = ClusterMarkerWriter(
            self.local,  # type: ignore[arg-type]
            NODE,
            lambda partition: self.leaders.get(partition, -1),
            self.brokers.send,
            self.loop,
        )
        self.markers = TransactionMarkers(self.writer, self.loop)

    def end(self, *partitions: TopicPartition, producer_id: int = 5, at: int = 3) -> asyncio.Future[Written]:
        metadata = TransactionMetadata(
            f"tx-{producer_id}",
            producer_id,
            4,
            state=TransactionState.PREPARE_COMMIT,
            partitions=frozenset(partitions),
            client_transaction_version=2,
        )
        return start(self.markers.write(at, lambda: self.epoch, metadata), self.loop)

    def move(self, partition: TopicPartition, leader: int) -> None:
        self.leaders[partition] = leader
        self.writer.reroute()
        self.loop.run_ready()

    def answer(self, sent: Sent, codes: dict[TopicPartition, ErrorCode] | None = None) -> None:
        def code(topic: str, index: int) -> int:
            return (codes or {}).get((topic, index), ErrorCode.NONE)

        results = [
            _Result(
                producer_id=marker.producer_id,
                topics=[
                    _Topic(
                        name=topic.name,
                        partitions=[
                            _Partition(partition_index=index, error_code=code(topic.name, index))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in sent.message.markers
        ]
        self.brokers.answer(sent, WriteTxnMarkersResponse(markers=results))


def named(sent: Sent) -> tuple[int, list[tuple[int, TopicPartition]]]:
    """The broker of a request, and the producers and partitions that it names."""
    return sent.broker_id, [
        (marker.producer_id, (topic.name, index))
        for marker in sent.message.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def test_each_marker_goes_to_the_leader_of_its_partition() -> None:
    subject = Subject()
    ended = subject.end(HERE, T0, T1, U0)
    assert subject.local.written == [(Marker(5, 4, 7, True, 2), HERE)], "in the same turn of the loop"
    to_2, to_3 = subject.brokers.take(), subject.brokers.take()
    assert (named(to_2), named(to_3)) == ((2, [(5, T0), (5, T1)]), (3, [(5, U0)]))
    (marker,) = to_2.message.markers
    assert (marker.producer_epoch, marker.coordinator_epoch) == (4, 7)
    assert (marker.transaction_result, marker.transaction_version) == (True, 2)
    subject.answer(to_2)
    assert not ended.done()
    subject.answer(to_3)
    assert ended.result() is Written.EVERYWHERE


def test_transactions_share_a_request() -> None:
    subject = Subject()
    first = subject.end(T0)
    first_request = subject.brokers.take()
    others = [subject.end(T0, producer_id=6), subject.end(T0, T1, producer_id=7)]
    subject.answer(first_request)
    assert first.result() is Written.EVERYWHERE
    second_request = subject.brokers.take()
    assert named(second_request) == (2, [(6, T0), (7, T0), (7, T1)])
    subject.answer(second_request)
    assert {ended.result() for ended in others} == {Written.EVERYWHERE}
    assert subject.brokers.sent == []


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_only_the_partitions_that_failed_are_tried_again(code: ErrorCode) -> None:
    subject = Subject()
    ended = subject.end(T0, T1)
    subject.answer(subject.brokers.take(), {T1: code})
    assert subject.brokers.sent == []
    subject.loop.advance(RETRY_BACKOFF_MS)
    again = subject.brokers.take()
    assert named(again) == (2, [(5, T1)])
    subject.answer(again)
    assert ended.result() is Written.EVERYWHERE


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_fenced_marker_ends_the_writing(code: ErrorCode) -> None:
    subject = Subject()
    ended = subject.end(T0, T1)
    subject.answer(subject.brokers.take(), {T1: code})
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.brokers.sent == []
    assert ended.result() in (Written.OVERTAKEN, Written.GIVEN_UP)


def test_a_lost_answer_is_asked_for_again() -> None:
    subject = Subject()
    ended = subject.end(T0)
    subject.brokers.lose(subject.brokers.take())
    subject.loop.advance(RETRY_BACKOFF_MS)
    again = subject.brokers.take()
    assert named(again) == (2, [(5, T0)])
    subject.answer(again)
    assert ended.result() is Written.EVERYWHERE


def test_a_partition_that_the_answer_leaves_out_is_asked_for_again() -> None:
    subject = Subject()
    ended = subject.end(T0)
    subject.brokers.answer(subject.brokers.take(), WriteTxnMarkersResponse())
    subject.loop.advance(RETRY_BACKOFF_MS)
    subject.answer(subject.brokers.take())
    assert ended.result() is Written.EVERYWHERE


def test_a_partition_without_a_leader_waits_for_one() -> None:
    subject = Subject()
    subject.leaders[T0] = -1
    ended = subject.end(T0)
    subject.loop.advance(RETRY_BACKOFF_MS * 5)
    assert subject.brokers.sent == []
    subject.move(T0, 3)
    subject.loop.advance(RETRY_BACKOFF_MS)
    sent = subject.brokers.take()
    assert named(sent) == (3, [(5, T0)])
    subject.answer(sent)
    assert ended.result() is Written.EVERYWHERE


@pytest.mark.parametrize("leader", [3, NODE])
def test_a_leader_that_moves_is_followed_without_waiting_for_the_old_one(leader: int) -> None:
    subject = Subject()
    ended = subject.end(T0)
    held = subject.brokers.take()
    subject.move(T0, leader)
    subject.loop.advance(RETRY_BACKOFF_MS)
    if leader == NODE:
        assert [partition for _, partition in subject.local.written] == [T0]
    else:
        sent = subject.brokers.take()
        assert named(sent) == (3, [(5, T0)])
        subject.answer(sent)
    assert ended.result() is Written.EVERYWHERE
    subject.brokers.lose(held)


def test_a_topic_that_is_deleted_meanwhile_needs_no_marker() -> None:
    subject = Subject()
    ended = subject.end(T0)
    held = subject.brokers.take()
    subject.local.gone.add(T0)
    subject.move(T0, -1)
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert ended.result() is Written.EVERYWHERE
    subject.brokers.lose(held)


def test_a_coordinator_that_moves_drops_its_markers() -> None:
    subject = Subject()
    first, second, other = subject.end(T0), subject.end(U0, producer_id=6), subject.end(T1, producer_id=7, at=4)
    held = subject.brokers.take()
    third = subject.end(T1, producer_id=8)
    subject.markers.forget(3)
    subject.loop.run_ready()
    assert [ended.result() for ended in (first, second, third)] == [Written.GIVEN_UP] * 3
    subject.answer(held)
    assert other.result() is Written.EVERYWHERE, "the one of another partition of the coordinator goes on"
    assert subject.brokers.take().broker_id == 3, "it was under way"
    assert subject.brokers.sent == [], "what waited is not sent"


def test_a_marker_that_is_written_again_carries_the_epoch_of_that_moment() -> None:
    subject = Subject()
    ended = subject.end(T0)
    fenced = subject.brokers.take()
    subject.epoch = 8
    subject.answer(fenced, {T0: ErrorCode.TRANSACTION_COORDINATOR_FENCED})
    subject.loop.advance(RETRY_BACKOFF_MS)
    again = subject.brokers.take()
    assert again.message.markers[0].coordinator_epoch == 8
    subject.answer(again)
    assert ended.result() is Written.EVERYWHERE


def test_the_end_of_the_broker_ends_the_writing() -> None:
    subject = Subject()
    waiting: asyncio.Future[Any] = start(subject.writer.write(Marker(5, 4, 7, True, 2), T0), subject.loop)
    subject.writer.close()
    subject.loop.run_ready()
    assert waiting.exception() is not None
    assert "ClusterMarkerWriter" in repr(subject.writer)
