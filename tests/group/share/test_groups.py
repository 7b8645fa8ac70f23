"""Share groups in their shard, in virtual time: epochs, assignment, silence, new partitions, a share coordinator that fails."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.share.group import ShareGroup
from barnabas.group.share.service import ShareGroupService
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest, ShareGroupHeartbeatRequest
from barnabas.server.config_table import config_schema
from barnabas.share.share_coordinator_shard import StateSummary
from tests.coordinator.memory_log import MemoryLog
from tests.coordinator.virtual_loop import VirtualLoop
from tests.group.cluster_metadata import ClusterMetadata

INTERVAL_MS = 1_000
SESSION_MS = 45_000


class Keeper:
    """A share coordinator that does as it is told."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.begun: list[tuple[str, bytes, int, int, int]] = []
        self.deleted: list[tuple[bytes, int]] = []
        self.fails: set[int] = set()

    def _answer(self, value: Any, partition: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        if partition in self.fails:
            future.set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            future.set_result(value)
        return future

    def initialize_state(
        self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int
    ) -> asyncio.Future[None]:
        self.begun.append((group_id, topic_id, partition, state_epoch, start_offset))
        return self._answer(None, partition)

    def read_summary(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[StateSummary]:
        return self._answer(StateSummary(1, 0, 10, 3), partition)

    def delete_state(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[None]:
        self.deleted.append((topic_id, partition))
        return self._answer(None, partition)


class Host:
    """One broker's share groups."""

    def __init__(self, **topics: int) -> None:
        self.loop = VirtualLoop()
        self.log = MemoryLog(self.loop)
        self.metadata = ClusterMetadata()
        for name, partitions in (topics or {"q": 2}).items():
            self.metadata.set_topic(name, partitions)
        self.keeper = Keeper(self.loop)
        self.epoch = 0
        self.fail_over()

    def fail_over(self) -> None:
        self.epoch += 1
        self.coordinator = GroupCoordinator(
            GroupCoordinatorConfig(offsets_topic_num_partitions=1),
            self.log,
            loop=self.loop,
            now_ms=lambda: self.loop.now_ms,
            rng=random.Random(1),
            image=lambda: self.metadata.image,
            group_configs=GroupConfigs(ConfigResolver(config_schema(), 1, {}, {}), lambda: self.metadata.image.configs),
        )
        self.service = ShareGroupService(
            self.coordinator,
            self.keeper,
            loop=self.loop,
            image=lambda: self.metadata.image,
            end_offset=lambda topic, index: 25,
        )
        self.coordinator.on_elected(0, self.epoch)
        self.loop.run_ready()

    def heartbeat(self, member: str, epoch: int, *topics: str) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=list(topics) or None
        )
        answer = self.service.heartbeat(request, "client", "/host")
        self.loop.run_ready()
        return answer.result()

    def join(self, member: str, *topics: str) -> int:
        """Join, and go on until nothing changes; returns the member's epoch."""
        epoch = int(self.heartbeat(member, 0, *(topics or ("q",))).member_epoch)
        for _ in range(3):
            self.loop.advance(INTERVAL_MS)
            epoch = int(self.heartbeat(member, epoch).member_epoch)
        return epoch

    @property
    def group(self) -> ShareGroup:
        found = self.coordinator._runtime._contexts[0].shard.groups["g"]
        assert isinstance(found, ShareGroup)
        return found

    def assigned(self, member: str) -> dict[bytes, frozenset[int]]:
        return dict(self.group.members[member].assigned)

    @property
    def q(self) -> bytes:
        return bytes(self.metadata.image.topics.by_name["q"].topic_id)


def test_a_partition_is_begun_with_the_groups_epoch_and_assigned_after_it() -> None:
    host = Host()
    first = host.heartbeat("m", 0, "q")
    assert [(g, p, e, s) for g, _, p, e, s in host.keeper.begun] == [("g", 0, 2, -1), ("g", 1, 2, -1)]
    assert (first.member_epoch, first.assignment.topic_partitions) == (2, [])
    host.loop.advance(INTERVAL_MS)
    second = host.heartbeat("m", 2)
    assert second.member_epoch == 3
    assert host.assigned("m") == {host.q: frozenset({0, 1})}


def test_the_assignment_interval_holds_the_next_assignment_back() -> None:
    host = Host()
    host.heartbeat("m", 0, "q")
    early = host.heartbeat("m", 2)
    assert (early.member_epoch, early.assignment) == (2, None)
    assert host.group.group_epoch == 3, "the group has moved on"
    host.loop.advance(INTERVAL_MS)
    assert host.heartbeat("m", 2).member_epoch == 3


def test_a_lost_answer_is_asked_for_again_with_the_epoch_before() -> None:
    host = Host()
    epoch = host.join("m")
    assert host.heartbeat("m", epoch).error_code == 0
    previous = host.group.members["m"].previous_member_epoch
    again = host.heartbeat("m", previous)
    assert (again.error_code, again.member_epoch) == (0, epoch)


def test_a_silent_member_is_removed_and_its_partitions_go_to_others() -> None:
    host = Host()
    host.join("loud")
    host.join("silent")
    epoch = host.group.members["loud"].member_epoch
    for _ in range(10):
        host.loop.advance(SESSION_MS // 9)
        epoch = host.heartbeat("loud", epoch).member_epoch
    assert list(host.group.members) == ["loud"]
    assert host.assigned("loud") == {host.q: frozenset({0, 1})}
    host.loop.advance(SESSION_MS)
    assert host.group.is_empty
    assert host.group.target_assignment == {}


def test_after_a_failover_members_have_a_session_from_then() -> None:
    host = Host()
    host.join("m")
    host.loop.advance(SESSION_MS - 1)
    host.fail_over()
    host.loop.advance(SESSION_MS - 1)
    assert "m" in host.group.members
    host.loop.advance(1)
    assert host.group.is_empty


def test_a_failover_keeps_everything() -> None:
    host = Host(q=2, r=1)
    host.join("a", "q", "r")
    host.join("b", "q")
    before = host.group
    host.fail_over()
    after = host.group
    for name in ("group_epoch", "assignment_epoch", "metadata_hash", "members", "target_assignment"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.subscribed_topic_names == before.subscribed_topic_names
    assert {k: v.partitions for k, v in after.state_partitions.initialized.items()} == {
        k: v.partitions for k, v in before.state_partitions.initialized.items()
    }


def test_new_partitions_are_begun_and_assigned() -> None:
    host = Host()
    epoch = host.join("m")
    host.coordinator.on_topics_changed(host.metadata.set_topic("q", 4))
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0, 1, 2, 3})}
    assert sorted(partition for _, _, partition, _, _ in host.keeper.begun) == [0, 1, 2, 3]


def test_a_topic_that_comes_later() -> None:
    host = Host(other=1)
    epoch = host.join("m", "q")
    assert host.assigned("m") == {}
    host.coordinator.on_topics_changed(host.metadata.set_topic("q", 1))
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0})}


def test_a_deleted_topic_leaves_the_assignment() -> None:
    host = Host(q=1, r=1)
    epoch = host.join("m", "q", "r")
    gone = bytes(host.metadata.image.topics.by_name["r"].topic_id)
    delta = host.metadata.delete_topic("r")
    host.coordinator.on_topics_changed(delta)
    host.coordinator.on_topics_deleted({"r": gone})
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0})}
    assert gone not in host.group.state_partitions.initialized


def test_what_the_share_coordinator_could_not_begin_is_begun_later() -> None:
    host = Host()
    host.keeper.fails = {1}
    epoch = host.join("m")
    assert host.assigned("m") == {host.q: frozenset({0})}
    host.keeper.fails = set()
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0, 1})}


def test_a_coordinator_that_died_between_note_and_call_asks_again() -> None:
    host = Host()
    keeper, host.keeper.initialize_state = host.keeper, lambda *a: host.loop.create_future()  # type: ignore[method-assign]
    host.heartbeat("m", 0, "q")
    assert {t.partitions for t in host.group.state_partitions.initializing.values()} == {frozenset({0, 1})}
    host.keeper = Keeper(host.loop)
    host.fail_over()
    epoch = host.group.members["m"].member_epoch
    host.loop.advance(29_000)
    epoch = host.heartbeat("m", epoch).member_epoch
    assert host.keeper.begun == [], "not before the retry interval"
    host.loop.advance(1_000)
    epoch = host.heartbeat("m", epoch).member_epoch
    assert len(host.keeper.begun) == 2
    assert keeper is not host.keeper


def test_a_log_that_refuses_changes_nothing() -> None:
    host = Host()
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert host.heartbeat("m", 0, "q").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    host.log.refuse = None
    assert host.heartbeat("m", 0, "q").member_epoch == 2
    assert len(host.keeper.begun) == 2


def test_lag() -> None:
    host = Host()
    host.join("m")
    host.keeper.fails = {1}
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    answer = host.service.describe_offsets(asked).result()
    (topic,) = answer.topics
    assert [(p.partition_index, p.start_offset, p.lag, p.error_code) for p in topic.partitions] == [
        (0, 10, 12, 0),
        (1, -1, -1, 0),
    ]


@pytest.mark.parametrize("failing", [set(), {1}])
def test_states_go_before_the_group(failing: set[int]) -> None:
    host = Host()
    host.join("m")
    assert host.service.delete_states(["g", "none"]).result() == {"g": ErrorCode.NON_EMPTY_GROUP}
    host.heartbeat("m", -1)
    host.keeper.fails = failing
    failed = host.service.delete_states(["g", "none"]).result()
    assert failed == ({"g": ErrorCode.COORDINATOR_NOT_AVAILABLE} if failing else {})
    assert host.group.state_partitions.initialized == {}
    assert host.group.state_partitions.deleting == {host.q: "q"}
    host.keeper.fails = set()
    host.service.delete_states(["g"]).result()
    assert host.keeper.deleted[-2:] == [(host.q, 0), (host.q, 1)], "what is still being deleted is deleted again"


def test_why_did_it_rebalance() -> None:
    host = Host()
    host.join("a")
    host.join("b")
    host.heartbeat("a", -1)
    history = host.coordinator._runtime._contexts[0].shard.environment.history
    causes = [record.cause for record in history.of("g")]
    assert causes[0] == "member a joined"
    assert "partitions are ready to be shared" in causes
    assert "member b joined" in causes
    assert causes[-1] == "member a was removed: it left"
