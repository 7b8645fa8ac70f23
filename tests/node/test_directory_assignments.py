"""Replicas that the metadata has in another directory than this broker's: told to the controller, again and again until it answers."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.node.directory_assignments import PARTITIONS_PER_REQUEST, RETRY_MS, DirectoryAssignments, OneDirectory
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AssignReplicasToDirsRequest, PartitionRecord, TopicRecord
from barnabas.protocol.primitives import Uuid
from barnabas.simulation.world_loop import WorldLoop

OURS, OTHER = Uuid(b"\7" * 16), Uuid(b"\6" * 16)
TOPIC = Uuid(b"t" * 16)


class Stage:
    """Broker 2, whose requests a test answers."""

    def __init__(self) -> None:
        self.loop = WorldLoop()
        self.asked: list[list[int]] = []
        self.answers: list[asyncio.Future[Any]] = []
        self.assignments = DirectoryAssignments(2, OneDirectory([OURS]), lambda: 9, self, self.loop)  # type: ignore[arg-type]

    def handle(self, api_key: int, version: int, request: AssignReplicasToDirsRequest) -> asyncio.Future[Any]:
        assert (api_key, version) == (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0)
        assert (request.broker_id, request.broker_epoch) == (2, 9)
        (directory,) = request.directories
        assert directory.id == OURS
        self.asked.append([each.partition_index for topic in directory.topics for each in topic.partitions])
        self.answers.append(self.loop.create_future())
        return self.answers[-1]

    def apply(self, *partitions: tuple[tuple[int, ...], tuple[Uuid, ...]]) -> None:
        """Apply metadata with a partition for each pair of replicas and directories."""
        delta = MetadataDelta(MetadataImage())
        delta.replay(TopicRecord(name="t", topic_id=TOPIC))
        for index, (replicas, directories) in enumerate(partitions):
            delta.replay(
                PartitionRecord(
                    topic_id=TOPIC,
                    partition_id=index,
                    replicas=list(replicas),
                    isr=list(replicas),
                    leader=replicas[0],
                    directories=list(directories),
                )
            )
        self.loop.run_until_complete(self.assignments.apply_delta(delta))
        self.run()

    def run(self, ms: float = 1) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def answer(self, error: KafkaError | None = None) -> None:
        if error is None:
            self.answers[-1].set_result(None)
        else:
            self.answers[-1].set_exception(error)
        self.run()


def test_only_replicas_of_this_broker_in_another_directory_are_named() -> None:
    stage = Stage()
    stage.apply(((1, 2), (OURS, OTHER)), ((1, 2), (OTHER, OURS)), ((1, 3), (OTHER, OTHER)), ((2,), (OTHER,)))
    assert stage.asked == [[0, 3]]
    stage.answer()
    stage.run(2 * RETRY_MS)
    assert stage.asked == [[0, 3]]


def test_a_request_that_fails_is_sent_again_without_what_has_been_settled() -> None:
    stage = Stage()
    stage.apply(((2,), (OTHER,)), ((2,), (OTHER,)))
    stage.answer(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    stage.apply(((2,), (OURS,)), ((2,), (OTHER,)))
    assert stage.asked == [[0, 1]]
    stage.run(RETRY_MS)
    assert stage.asked == [[0, 1], [1]]
    stage.answer()
    assert repr(stage.assignments) == "<DirectoryAssignments broker=2 waiting=0>"


def test_many_replicas_go_in_several_requests() -> None:
    stage = Stage()
    stage.apply(*[((2,), (OTHER,))] * (PARTITIONS_PER_REQUEST + 1))
    stage.answer()
    assert [len(each) for each in stage.asked] == [PARTITIONS_PER_REQUEST, 1]


def test_a_closed_one_sends_nothing_more() -> None:
    stage = Stage()
    stage.apply(((2,), (OTHER,)))
    stage.assignments.close()
    stage.run(2 * RETRY_MS)
    stage.apply()
    assert stage.asked == [[0]]


class Halves:
    """Even partitions are in one directory, odd ones in another."""

    ids = (OURS, OTHER)

    def place(self, topic: str, index: int, assigned: bytes, *, is_new: bool = False) -> Uuid:
        return self.ids[index % 2]


def test_each_directory_is_named_with_its_partitions() -> None:
    stage = Stage()
    asked: list[dict[bytes, list[int]]] = []

    def handle(api_key: int, version: int, request: AssignReplicasToDirsRequest) -> asyncio.Future[Any]:
        asked.append(
            {
                each.id: [partition.partition_index for topic in each.topics for partition in topic.partitions]
                for each in request.directories
            }
        )
        stage.answers.append(stage.loop.create_future())
        return stage.answers[-1]

    stage.handle = handle  # type: ignore[method-assign]
    stage.assignments = DirectoryAssignments(2, Halves(), lambda: 9, stage, stage.loop)  # type: ignore[arg-type]
    unassigned = Uuid(bytes(15) + b"\1")
    stage.apply(((2,), (unassigned,)), ((2,), (OTHER,)), ((2,), (unassigned,)), ((2,), (OURS,)))
    assert asked == [{OURS: [0, 2], OTHER: [3]}]
    stage.answer()
    assert repr(stage.assignments) == "<DirectoryAssignments broker=2 waiting=0>"


class Choosing(OneDirectory):
    """A placement that a test changes."""

    chosen = OURS

    def place(self, topic: str, index: int, assigned: bytes, *, is_new: bool = False) -> bytes:
        return self.chosen


def test_a_directory_that_is_chosen_while_another_one_is_under_way() -> None:
    """The controller gets both, in this order, although the metadata has the last one all the time."""
    loop = WorldLoop()
    placement = Choosing(OURS)
    asked: list[Uuid] = []
    answers: list[asyncio.Future[Any]] = []

    class Controller:
        def handle(self, api_key: int, version: int, request: AssignReplicasToDirsRequest) -> asyncio.Future[Any]:
            asked.extend(directory.id for directory in request.directories)
            answers.append(loop.create_future())
            return answers[-1]

    assignments = DirectoryAssignments(2, placement, lambda: 9, Controller(), loop)  # type: ignore[arg-type]
    record = PartitionRecord(topic_id=TOPIC, replicas=[2], isr=[2], leader=2, directories=[OTHER])
    registration = PartitionRegistration.from_record(record)
    first = assignments.tell("t", (TOPIC, 0), registration)
    loop.run_until_complete(asyncio.sleep(0.001))
    placement.chosen = OTHER
    second = assignments.tell("t", (TOPIC, 0), registration)
    assert first is second
    assert second is not None
    for expected in (OURS, OTHER):
        assert (asked[-1], second.done()) == (expected, False)
        answers[-1].set_result(None)
        loop.run_until_complete(asyncio.sleep(0.001))
    assert (len(asked), second.done()) == (2, True)
    placement.chosen = OURS
    waiting = assignments.tell("t", (TOPIC, 0), registration)
    assignments.close()
    assert waiting is not None
    assert waiting.done()
    assert assignments.tell("t", (TOPIC, 0), registration) is None
