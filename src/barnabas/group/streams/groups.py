"""StreamsGroups: the part of a shard that serves streams groups (control plane).

    StreamsHeartbeats   heartbeats: join, tasks, leave        ──┐
    StreamsTimers       sessions, revocations, first delay    ──┴─> records ──> StreamsReplay ──> StreamsGroup

Source: KIP-1071; Kafka class `GroupMetadataManager`.
"""

from __future__ import annotations

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.sender import Sender
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult, StreamsHeartbeats
from barnabas.group.streams.replay import StreamsReplay
from barnabas.group.streams.task_assignor import STICKY
from barnabas.group.streams.timers import StreamsTimers
from barnabas.protocol.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatRequest


class StreamsGroups:
    """The streams groups of one shard."""

    def __init__(self, env: GroupEnvironment) -> None:
        self._env = env
        self._timers = StreamsTimers(env)
        self._heartbeats = StreamsHeartbeats(env, self._timers)
        self.replay_by_type = StreamsReplay(env, self._timers).replay_by_type

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, sender: Sender
    ) -> CoordinatorResult[StreamsHeartbeatResult]:
        """Handle StreamsGroupHeartbeat. Raises: KafkaError, see `StreamsHeartbeats.handle`."""
        return self._heartbeats.handle(request, sender)

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        """Describe a group for StreamsGroupDescribe. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        return self._env.require(group_id, StreamsGroup).describe(STICKY)

    def on_loaded(self, group: Group) -> None:
        """Members have a session from now."""
        assert isinstance(group, StreamsGroup), group
        self._timers.watch_loaded(group)

    def on_unloaded(self, group: Group) -> None:
        """Nobody waits inside a streams group."""
