"""StreamsGroups: the part of a shard that serves streams groups (control plane).

    StreamsHeartbeats   heartbeats: join, tasks, leave        ──┐
    StreamsTimers       sessions, revocations, first delay    ──┴─> records ──> StreamsReplay ──> StreamsGroup

Source: KIP-1071; Kafka class `GroupMetadataManager`.
"""

from __future__ import annotations

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatResult, StreamsHeartbeats
from barnabas.group.streams.replay import StreamsReplay
from barnabas.group.streams.task_assignor import STICKY
from barnabas.group.streams.timers import StreamsTimers
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupDescribeResponse


class StreamsGroups:
    """The streams groups of one shard."""

    def __init__(self, env: GroupEnvironment) -> None:
        self._env = env
        self._timers = StreamsTimers(env)
        self._heartbeats = StreamsHeartbeats(env, self._timers)
        self.replay_by_type = StreamsReplay(env, self._timers).replay_by_type

    def heartbeat(self, heartbeat: StreamsHeartbeat) -> CoordinatorResult[StreamsHeartbeatResult]:
        """Answer a member. Raises: KafkaError."""
        return self._heartbeats.handle(heartbeat)

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        """Describe a group; GROUP_ID_NOT_FOUND within the answer when there is no such streams group."""
        try:
            return self._env.require(group_id, StreamsGroup).describe(STICKY)
        except KafkaError as error:
            return StreamsGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=error.message
            )

    def on_loaded(self, group: Group) -> None:
        """Members have a session from now."""
        assert isinstance(group, StreamsGroup), group
        self._timers.watch_loaded(group)

    def on_unloaded(self, group: Group) -> None:
        """Nobody waits inside a streams group."""
