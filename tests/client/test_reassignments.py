"""Replicas that move, against a controller in memory that needs some looks for each partition."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from barnabas.client.admin import Admin, Reassignment, TopicPartition
from barnabas.client.reassignments import Cancelled, Stalled
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code

Begin = messages.AlterPartitionReassignmentsResponse
Listed = messages.ListPartitionReassignmentsResponse
Described = messages.DescribeTopicPartitionsResponse

PARTITIONS = [TopicPartition("t", index) for index in range(5)]


class Controller:
    """Moves each partition for as many looks as `looks` says; a partition of `refused` is not begun."""

    def __init__(self, memory: MemoryCluster) -> None:
        self.memory = memory
        self.looks: Counter[int] = Counter(range(5))
        self.refused: dict[int, ErrorCode] = {}
        self.moving: dict[int, list[int]] = {}
        self.most = 0
        self.begun: list[int] = []
        self.had: dict[int, list[int]] = {}
        memory.handlers["AlterPartitionReassignmentsRequest"] = self.begin
        memory.handlers["ListPartitionReassignmentsRequest"] = self.list
        memory.handlers["DescribeTopicPartitionsRequest"] = self.describe

    def begin(self, broker: int, request: Any, version: int) -> Any:
        assert broker == self.memory.controller_id
        answers = []
        for topic in request.topics:
            for each in topic.partitions:
                code = self.refused.get(each.partition_index, ErrorCode.NONE)
                answers.append(
                    Begin.ReassignablePartitionResponse(partition_index=each.partition_index, error_code=code)
                )
                if not code:
                    self.begun.append(each.partition_index)
                    self.had[each.partition_index] = list(each.replicas)
                    if self.looks[each.partition_index]:
                        self.moving[each.partition_index] = each.replicas
        self.most = max(self.most, len(self.moving))
        return Begin(responses=[Begin.ReassignableTopicResponse(name="t", partitions=answers)])

    def list(self, broker: int, request: Any, version: int) -> Any:
        assert broker == self.memory.controller_id
        found = [
            Listed.OngoingPartitionReassignment(
                partition_index=index, replicas=[1, *replicas], adding_replicas=replicas, removing_replicas=[1]
            )
            for index, replicas in self.moving.items()
        ]
        for index in list(self.moving):
            self.looks[index] -= 1
            if not self.looks[index]:
                del self.moving[index]
        return Listed(topics=[Listed.OngoingTopicReassignment(name="t", partitions=found)])

    def describe(self, broker: int, request: Any, version: int) -> Any:
        partitions = [
            Described.DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=-1 if index == 4 else 1,
                replica_nodes=[1, 2] if index in self.moving else self.had.get(index, [1, 2]),
                offline_replicas=[1, 2] if index == 4 else [2] if index == 3 else [],
            )
            for index in range(5)
        ]
        return Described(topics=[Described.DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)])


@pytest.fixture
def controller(memory: MemoryCluster) -> Controller:
    return Controller(memory)


def test_some_partitions_at_once_until_all_have_moved(
    controller: Controller, admin: Admin, memory: MemoryCluster
) -> None:
    ended: list[int] = []
    slept: list[float] = []
    found = admin.reassign({at: [2] for at in PARTITIONS}, at_once=2, ended=ended.append, sleep=slept.append)
    assert found == dict.fromkeys(PARTITIONS)
    assert (controller.begun, controller.moving, controller.most) == ([0, 1, 2, 3, 4], {}, 2)
    assert ended == sorted(ended)
    assert ended[-1] == 5
    assert 0 < len(slept) < 12


def test_a_partition_that_may_not_move_does_not_hold_up_the_others(controller: Controller, admin: Admin) -> None:
    controller.refused[1] = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    found = admin.reassign({at: [2] for at in PARTITIONS}, at_once=1, sleep=lambda _: None)
    assert [at for at, error in found.items() if error] == [T1]
    assert error_code(found[T1]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert controller.begun == [0, 2, 3, 4]


def test_nothing_to_move_asks_nothing(controller: Controller, admin: Admin, memory: MemoryCluster) -> None:
    assert admin.reassign({}, at_once=2) == {}
    assert memory.requests == []


def test_moves_that_brokers_hold_up_are_named(controller: Controller, admin: Admin, memory: MemoryCluster) -> None:
    controller.looks = Counter(dict.fromkeys(range(5), 10_000))

    def sleep(seconds: float) -> None:
        memory.now += seconds

    with pytest.raises(Stalled) as caught:
        admin.reassign({at: [2] for at in PARTITIONS}, at_once=5, sleep=sleep)
    assert caught.value.waits == {TopicPartition("t", 3): [2], TopicPartition("t", 4): [1, 2]}
    assert 5 <= memory.now < 10


def test_slow_moves_are_waited_for_while_their_brokers_serve(
    controller: Controller, admin: Admin, memory: MemoryCluster
) -> None:
    controller.looks = Counter({0: 100})

    def sleep(seconds: float) -> None:
        memory.now += seconds

    assert admin.reassign({T0: [2]}, at_once=5, sleep=sleep) == {T0: None}
    assert memory.now > 60


def test_what_is_moving_is_listed(controller: Controller, admin: Admin) -> None:
    controller.moving = {0: [2, 3]}
    controller.looks[0] = 1
    assert admin.list_reassignments() == {T0: Reassignment([1, 2, 3], [2, 3], [1])}
    assert admin.list_reassignments() == {}


def test_a_move_that_somebody_cancels_ends_all_that_wait(controller: Controller, admin: Admin) -> None:
    controller.looks = Counter(dict.fromkeys(range(5), 3))

    def cancel(seconds: float) -> None:
        # Partition 0 gets its old replicas back; partition 1 goes on until it has moved.
        controller.moving.pop(0, None)
        controller.had[0] = [1]

    with pytest.raises(Cancelled) as caught:
        admin.reassign({at: [2] for at in PARTITIONS}, at_once=2, sleep=cancel)
    assert (caught.value.partitions, caught.value.moved, caught.value.waiting) == ([T0], 1, 3)
    assert controller.begun == [0, 1]
    assert str(caught.value) == "1 reassignments were cancelled"
