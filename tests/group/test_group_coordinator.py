"""The front of the groups: where a group lives, and answers that come from several partitions."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any

from barnabas.group import requests
from barnabas.group.classic import requests as classic_requests
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListGroupsRequest, OffsetCommitRequest
from barnabas.steps import start
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.virtual_loop import VirtualLoop


class Hosted:
    def __init__(self, partitions: int = 3) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        config = GroupCoordinatorConfig(offsets_topic_num_partitions=partitions)
        new_shard = shard_factory(config, now_ms=lambda: self.loop.now_ms, rng=random.Random(0))
        self.coordinator = GroupCoordinator(
            config, self.log, new_shard, loop=self.loop, now_ms=lambda: self.loop.now_ms
        )
        for partition in range(partitions):
            self.coordinator.on_elected(partition, 0)
        self.loop.run_ready()

    def ask(self, answer: Coroutine[Any, Any, Any]) -> Any:
        return start(answer, self.loop).result()

    def commit(self, group_id: str) -> Any:
        Topic = OffsetCommitRequest.OffsetCommitRequestTopic
        Partition = OffsetCommitRequest.OffsetCommitRequestPartition
        partitions = [Partition(partition_index=0, committed_offset=1, committed_metadata=None)]
        request = OffsetCommitRequest(group_id=group_id, topics=[Topic(name="t", partitions=partitions)])
        return self.ask(requests.offset_commit(self.coordinator, request, 9))


def test_groups_live_in_their_partitions() -> None:
    host = Hosted()
    groups = [f"group-{index}" for index in range(20)]
    for group_id in groups:
        host.commit(group_id)
    assert sorted(host.log.batches) == [0, 1, 2]
    listed = host.ask(requests.list_groups(host.coordinator, ListGroupsRequest()))
    assert sorted(group.group_id for group in listed.groups) == sorted(groups)


def test_answers_keep_the_order_asked() -> None:
    host = Hosted()
    groups = [f"group-{index}" for index in range(6)]
    host.commit(groups[2])
    described = host.ask(classic_requests.describe(host.coordinator, groups, 6))
    assert [group.group_id for group in described] == groups
    assert [group.error_code for group in described].count(ErrorCode.NONE) == 1
    deleted = host.ask(requests.delete_groups(host.coordinator, [*groups, groups[2]]))
    assert [group.group_id for group in deleted] == groups, "a group named twice is deleted once"


def test_one_partition_lost() -> None:
    host = Hosted()
    lost = host.coordinator.partition_of("g")
    host.commit("g")
    host.coordinator.on_resigned(lost)
    response = host.commit("g")
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    listed = host.ask(requests.list_groups(host.coordinator, ListGroupsRequest()))
    assert (listed.error_code, listed.groups) == (ErrorCode.NONE, []), "its groups are another broker's to list"


def test_filters_ignore_case() -> None:
    host = Hosted()
    host.commit("g")

    def count(states: list[str], types: list[str]) -> int:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return len(host.ask(requests.list_groups(host.coordinator, request)).groups)

    assert count(["eMPTY", " stable "], ["Classic"]) == 1
    assert count(["Stable"], []) == 0
    assert count([], ["consumer"]) == 0
    assert count(["nonsense"], []) == 0
    assert count([], ["nonsense"]) == 0


def test_as_many_partitions_as_the_topic_has() -> None:
    loop = VirtualLoop()
    config = GroupCoordinatorConfig()
    new_shard = shard_factory(config, now_ms=lambda: 0, rng=random.Random(0))
    coordinator = GroupCoordinator(
        config, InternalTopic(loop), new_shard, loop=loop, now_ms=lambda: 0, partition_count=lambda: 7
    )
    assert coordinator.partition_of("hello") == 99162322 % 7


def test_a_thousand_commits_are_cheap_to_load_again() -> None:
    host = Hosted(1)
    for index in range(1000):
        host.commit(f"g{index % 10}")
    host.coordinator.on_resigned(0)
    host.coordinator.on_elected(0, 1)
    host.loop.run_ready()
    assert len(host.ask(requests.list_groups(host.coordinator, ListGroupsRequest())).groups) == 10
