"""Proposals on their way to the controller: batched, one request at a time, sent again when that can help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from barnabas.replication import alter_partition_manager
from barnabas.replication.alter_partition_manager import NAMED_MAX, RETRY_MS, AlterPartitionManager
from barnabas.replication.partition import Partition
from barnabas.simulation.world_loop import WorldLoop
from tests.replication.following import Node, registration


class Controller:
    """Keeps the requests until a test answers them."""

    def __init__(self, loop: WorldLoop) -> None:
        self.loop = loop
        self.asked: list[AlterPartitionRequest] = []
        self.answers: list[asyncio.Future[Any]] = []

    def handle(self, api_key: int, version: int, request: Any) -> asyncio.Future[Any]:
        assert (api_key, version) == (ApiKey.ALTER_PARTITION, 3)
        self.asked.append(AlterPartitionRequest.decode(request.encode(version), version))
        self.answers.append(self.loop.create_future())
        return self.answers[-1]


class World:
    def __init__(self, partitions: int = 3) -> None:
        self.loop = WorldLoop()
        self.node = Node(1, partitions)
        self.controller = Controller(self.loop)
        self.manager = AlterPartitionManager(1, lambda: 101, self.controller, self.loop)
        for index in range(partitions):
            self.node.lead(registration(1, isr=(1, 2, 3)), index)
        self.node.now_ms = self.node.lag_time_max_ms + 1

    def propose(self, index: int = 0) -> Partition:
        partition = self.node.replica(index)
        change = partition.prepare_shrink_isr()
        assert change is not None
        self.manager.submit(partition, change)
        return partition

    def advance(self, ms: float = 1) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def indexes(self) -> list[list[int]]:
        """The partitions of each request."""
        return [
            [part.partition_index for topic in each.topics for part in topic.partitions]
            for each in self.controller.asked
        ]

    def answer(self, *codes: ErrorCode, top: ErrorCode = ErrorCode.NONE, leave_out: int | None = None) -> None:
        """Answer the last request: with an ISR of the leader alone, or an error for each partition."""
        asked = self.controller.asked[-1]
        response = AlterPartitionResponse(error_code=int(top))
        for topic in asked.topics:
            parts = []
            for number, part in enumerate(topic.partitions):
                code = codes[number] if codes else ErrorCode.NONE
                if part.partition_index != leave_out:
                    parts.append(
                        AlterPartitionResponse.PartitionData(
                            partition_index=part.partition_index,
                            error_code=int(code),
                            leader_id=1,
                            isr=[1],
                            partition_epoch=part.partition_epoch + 1,
                        )
                    )
            response.topics.append(AlterPartitionResponse.TopicData(topic_id=topic.topic_id, partitions=parts))
        self.controller.answers[-1].set_result(response)
        self.advance()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.manager.close()
    made.advance()
    assert not made.loop.errors, made.loop.errors
    made.loop.close()


def test_changes_of_one_turn_are_one_request(world: World) -> None:
    world.propose(0)
    world.propose(2)
    world.advance()
    assert world.indexes() == [[0, 2]]
    (topic,) = world.controller.asked[0].topics
    assert (world.controller.asked[0].broker_id, world.controller.asked[0].broker_epoch) == (1, 101)
    assert topic.topic_id == world.node.topic.topic_id
    assert [(each.broker_id, each.broker_epoch) for each in topic.partitions[0].new_isr_with_epochs] == [(1, 101)]
    world.answer()
    assert [world.node.replica(index).isr for index in range(3)] == [(1,), (1, 2, 3), (1,)]


def test_a_new_change_does_not_wait_until_another_is_sent_again(world: World) -> None:
    world.propose(0)
    world.advance()
    world.answer(ErrorCode.UNKNOWN_SERVER_ERROR)
    world.propose(1)
    world.propose(2)
    world.advance()
    assert world.indexes() == [[0], [0, 1, 2]], "the changes of one turn go together, and take along what waits"
    world.answer(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE, ErrorCode.NONE)
    world.advance(RETRY_MS - 5)
    assert len(world.indexes()) == 2
    world.advance(5)
    assert world.indexes()[2:] == [[0]]
    world.answer()


def test_a_request_has_a_limited_number_of_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alter_partition_manager, "CHANGES_PER_REQUEST", 2)
    for index in range(3):
        world.propose(index)
    world.advance()
    assert world.indexes() == [[0, 1]]
    world.answer()
    assert world.indexes() == [[0, 1], [2]]


def test_one_request_is_under_way(world: World) -> None:
    world.propose(0)
    world.advance()
    world.propose(1)
    world.propose(2)
    world.advance(1000)
    assert world.indexes() == [[0]]
    world.answer()
    assert world.indexes() == [[0], [1, 2]]
    world.answer()
    world.advance(1000)
    assert world.indexes() == [[0], [1, 2]]


@pytest.mark.parametrize("how", ["raised", "of the whole request", "left out", "of the partition"])
def test_what_has_no_outcome_is_sent_again(world: World, how: str) -> None:
    partition = world.propose()
    world.advance()
    if how == "raised":
        world.controller.answers[-1].set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        world.advance()
    elif how == "of the whole request":
        world.answer(top=ErrorCode.STALE_BROKER_EPOCH)
    elif how == "left out":
        world.answer(leave_out=0)
    else:
        world.answer(ErrorCode.UNKNOWN_SERVER_ERROR)
    world.advance(RETRY_MS - 5)
    assert world.indexes() == [[0]]
    world.advance(5)
    assert world.indexes() == [[0], [0]]
    world.answer()
    assert partition.isr == (1,)
    world.advance(1000)
    assert world.indexes() == [[0], [0]]


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION])
def test_what_cannot_succeed_is_not_sent_again(world: World, code: ErrorCode) -> None:
    partition = world.propose()
    world.advance()
    world.answer(code)
    world.advance(1000)
    assert (world.indexes(), partition.isr) == ([[0]], (1, 2, 3))


def test_changes_that_the_controller_rejects_for_one_reason_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "barnabas.replication")
    world = World(partitions=NAMED_MAX + 3)
    for index in range(NAMED_MAX + 3):
        world.propose(index)
    world.advance()
    rejected, other = ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION
    world.answer(other, *[rejected] * (NAMED_MAX + 2))
    names = ", ".join(f"orders-{index}" for index in range(1, NAMED_MAX + 1))
    assert caplog.messages == [
        f"The controller did not change the ISR of orders-0: {other.default_message}",
        f"The controller did not change the ISR of {names} and 2 more: {rejected.default_message}",
    ]
    world.manager.close()
    world.loop.close()


def test_a_change_that_newer_metadata_has_ended_is_not_sent(world: World) -> None:
    world.propose(0)
    world.advance()
    world.propose(1)
    world.propose(2)
    world.node.replica(1).update(registration(1, isr=(1, 2), partition_epoch=1))
    world.node.replica(2).is_deleted = True
    world.answer()
    world.advance(1000)
    assert world.indexes() == [[0]]


def test_a_newer_change_survives_the_answer_to_the_one_before(world: World) -> None:
    partition = world.propose()
    world.advance()
    partition.update(registration(1, 1, isr=(1, 2), partition_epoch=1))
    world.node.now_ms *= 3
    world.propose()
    world.answer(ErrorCode.FENCED_LEADER_EPOCH)
    world.advance()
    assert world.indexes() == [[0], [0]]
    assert world.controller.asked[1].topics[0].partitions[0].leader_epoch == 1


def test_a_closed_manager_sends_nothing(world: World) -> None:
    partition = world.propose()
    world.advance()
    world.propose(1)
    world.manager.close()
    world.advance(1000)
    assert (world.indexes(), partition.isr) == ([[0]], (1, 2, 3))
