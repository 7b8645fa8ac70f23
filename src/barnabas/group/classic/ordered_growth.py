"""Ordered growth in groups of the classic protocol: the leader's assignment without the partitions that are held.

A classic group's leader gives out every partition of a topic. The coordinator takes the held ones
(`group.ordered_growth`) out of the consumers' own message, before it writes the assignment. When a partition is no longer held, the
coordinator starts a rebalance, and the leader gives it out again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.consumer_protocol import read_assignment, version_of, write_assignment
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.rebalance import Rebalance, holdings_of
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.ordered_growth import Given, GrowthWatch, held_partitions
from barnabas.protocol.errors import MalformedMessage

logger = logging.getLogger(__name__)

STREAMS_ASSIGNOR = "stream"
"""The protocol name of Kafka Streams: its members get tasks, in user data that only they read."""


class ClassicGrowth:
    """Holds partitions back from the classic groups of one shard."""

    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._rebalance = rebalance
        self._watch = GrowthWatch(environment, ClassicGroup, topics=_topics, given=_given, release=self._release)

    def __repr__(self) -> str:
        return f"<ClassicGrowth {self._watch!r}>"

    def watch(self, group: ClassicGroup) -> None:
        """Look at a group from now on, if one of its topics has grown in order."""
        self._watch.watch(group.group_id, _topics(group))

    def without_held(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the leader's assignments (by member id) without the partitions that are held."""
        held = held_partitions(self._environment, group.group_id, _topics(group))
        if not held:
            return dict(assignments)
        return {member_id: _without(group, data, held) for member_id, data in assignments.items()}

    def _release(self, group: ClassicGroup, cause: str) -> CoordinatorResult[None]:
        return self._rebalance.prepare_or_complete_join(group, cause)


def _topics(group: ClassicGroup) -> Collection[str]:
    """Return the topics that the members consume; none if they are no consumers, or consumers of Kafka Streams."""
    if group.protocol_name == STREAMS_ASSIGNOR:
        return ()
    return group.subscribed_topics or ()


def _given(group: ClassicGroup) -> Given | None:
    if not group.is_in_state(ClassicGroupState.STABLE):
        return None
    given = frozenset[tuple[str, int]]().union(*holdings_of(group).values())
    return lambda topic, partition: (topic.name, partition) in given


def _without(group: ClassicGroup, data: bytes, held: Mapping[str, frozenset[int]]) -> bytes:
    """Return a member's assignment without held partitions; the same bytes if it has none, or cannot be read."""
    if not data:
        return data
    try:
        assignment, version = read_assignment(data), version_of(data)
    except MalformedMessage as error:
        logger.warning(
            "group %s: an assignment is given out whole, because it cannot be read: %s", group.group_id, error
        )
        return data
    changed = False
    for topic in assignment.assigned_partitions:
        kept = [each for each in topic.partitions if each not in held.get(topic.topic, ())]
        changed = changed or len(kept) < len(topic.partitions)
        topic.partitions = kept
    if not changed:
        return data
    assignment.assigned_partitions = [topic for topic in assignment.assigned_partitions if topic.partitions]
    return write_assignment(assignment, version)
