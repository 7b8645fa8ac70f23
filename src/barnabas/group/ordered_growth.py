"""Ordered growth in groups: partitions that a group may not have yet, and the rebalance when it may.

A topic with the setting `barnabas.ordered.growth` has new partitions, each with a parent (`protocol.ordered_growth`). A group gets a new
partition when its committed offset of the parent has reached the parent's fence. Until then

- a consumer group's target assignment leaves the partition out;
- a classic group's members get the leader's assignment without it.

`GrowthWatch` looks at the groups from which something is held, once a second, and starts a rebalance when a partition may be given out.
It decides from the metadata, the committed offsets and the assignment alone, so that a coordinator after a failover decides the same; no
commit does any work for it.

A group that read the topic before starts a new partition at its first record, whatever its clients' auto.offset.reset says: the
coordinator commits offset 0 for a held partition of which the group has no offset, if the group has one of the parent. It does so when the
topic grows, for groups without members too, and again when it watches a group.

Limits: groups of Kafka Streams (the assignor `stream`) get all partitions, because their user data names tasks; so do assignments
that cannot be read, and share groups, which have no order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.offset_records import offset_commit_record
from barnabas.group.offset_store import OffsetAndMetadata
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.ordered_growth import (
    SETTING,
    Generation,
    Hold,
    grown_partitions,
    hold_of,
    read_generations,
)

logger = logging.getLogger(__name__)

G = TypeVar("G", bound=Group)

CHECK_MS = 1_000
"""How often a group that waits is looked at."""
RELEASE_MS = 5_000
"""The least time between two rebalances of a group that give out held partitions: several fences are often reached together."""

Given = Callable[[TopicImage, int], bool]
"""Returns whether a partition of a topic is assigned to a member."""

NOTHING: CoordinatorResult[None] = CoordinatorResult(None)


class GrownTopic(NamedTuple):
    """A topic with ordered growth."""

    topic: TopicImage
    generations: tuple[Generation, ...]

    def new_partitions(self) -> Iterator[int]:
        """Yield the partitions that have a parent."""
        return grown_partitions(self.generations, len(self.topic.partitions))


def grown_topics(environment: GroupEnvironment, topics: Iterable[str]) -> Iterator[GrownTopic]:
    """Yield those of some topics that have grown in order: one look-up for each of the others."""
    image = environment.image()
    for name in topics:
        text = image.configs.for_resource(ConfigResourceType.TOPIC, name).get(SETTING)
        if text:
            topic = image.topics.by_name.get(name)
            if topic is not None:
                yield GrownTopic(topic, read_generations(text))


def hold(environment: GroupEnvironment, group_id: str, grown: GrownTopic, partition: int) -> Hold | None:
    """Return why a group may not have a partition yet; None if it may."""
    topic = grown.topic

    def committed(parent: int) -> int | None:
        found = environment.offsets.offsets.get(group_id, topic.name, parent)
        return None if found is None or not found.is_of_topic(topic.topic_id) else found.committed_offset

    return hold_of(grown.generations, partition, committed)


def held_partitions(environment: GroupEnvironment, group_id: str, topics: Iterable[str]) -> dict[str, frozenset[int]]:
    """Return the partitions that a group may not have yet, by topic name; topics without one are left out."""
    found = {}
    for grown in grown_topics(environment, topics):
        held = frozenset(
            each for each in grown.new_partitions() if hold(environment, group_id, grown, each) is not None
        )
        if held:
            found[grown.topic.name] = held
    return found


class GrowthWatch(Generic[G]):
    """Watches the groups of one type in one shard.

    Args:
        kind: the type.
        topics: returns the topics that a group consumes.
        given: returns what is assigned now; None while the group rebalances.
        release: starts a rebalance, for a cause.
    """

    def __init__(
        self,
        environment: GroupEnvironment,
        kind: type[G],
        *,
        topics: Callable[[G], Iterable[str]],
        given: Callable[[G], Given | None],
        release: Callable[[G, str], CoordinatorResult[None]],
    ) -> None:
        self._environment = environment
        self._kind = kind
        self._topics = topics
        self._given = given
        self._release = release
        # For each group: what the last rebalance was to give out, and when it began. A leader may leave partitions out for good.
        self._released: dict[str, tuple[frozenset[tuple[str, int]], int]] = {}

    def __repr__(self) -> str:
        return f"<GrowthWatch {self._kind.__name__} {len(self._released)} released>"

    def watch(self, group_id: str, topics: Iterable[str]) -> None:
        """Look at a group from now on, if one of its topics has grown in order; the first time before any client can commit."""
        key = self._key(group_id)
        if key not in self._environment.timer and any(grown_topics(self._environment, topics)):
            self._schedule(group_id, 0)

    def _key(self, group_id: str) -> str:
        # A group may change its type while it waits: each type's watch ends by itself.
        return f"ordered-growth-{self._kind.type.value}-{group_id}"

    def _schedule(self, group_id: str, delay_ms: int) -> None:
        self._environment.timer.schedule(self._key(group_id), delay_ms, lambda: self._look(group_id))

    def _look(self, group_id: str) -> CoordinatorResult[None]:
        """Commit the start of held partitions; rebalance if one may be given out; look again while one is held."""
        environment = self._environment
        group = environment.find(group_id, self._kind)
        if group is None or group.is_empty:
            self._released.pop(group_id, None)
            return NOTHING
        given = self._given(group)
        starts: list[CoordinatorRecord] = []
        ready: list[tuple[str, int]] = []
        waits = given is None
        for grown in grown_topics(environment, self._topics(group)):
            for partition in grown.new_partitions():
                why = hold(environment, group_id, grown, partition)
                if why is not None:
                    waits = True
                    starts += _start(environment, group_id, grown.topic, partition, why)
                elif given is not None and not given(grown.topic, partition):
                    ready.append((grown.topic.name, partition))
        if starts:
            self._schedule(group_id, CHECK_MS)
            return CoordinatorResult(None, starts)
        released, at_ms = self._released.get(group_id, (frozenset[tuple[str, int]](), 0))
        now_ms = environment.now_ms()
        if ready and not released.issuperset(ready):
            self._schedule(group_id, CHECK_MS)
            if waits and now_ms < at_ms + RELEASE_MS:
                return NOTHING
            self._released[group_id] = (frozenset(ready), now_ms)
            names = ", ".join(f"{topic}-{partition}" for topic, partition in ready[:3])
            more = f" and {len(ready) - 3} more" if len(ready) > 3 else ""
            return self._release(group, f"no longer held at a fence: {names}{more}")
        if waits:
            self._schedule(group_id, CHECK_MS)
        elif not ready:
            self._released.pop(group_id, None)
        return NOTHING


def starts_of(environment: GroupEnvironment, topics: Iterable[str]) -> list[CoordinatorRecord]:
    """Return the commits with which every group that has read some grown topics begins their new partitions."""
    return [
        record
        for grown in grown_topics(environment, topics)
        for group_id, offsets in environment.offsets.offsets.by_group.items()
        if grown.topic.name in offsets
        for partition in grown.new_partitions()
        if (why := hold(environment, group_id, grown, partition)) is not None
        for record in _start(environment, group_id, grown.topic, partition, why)
    ]


def _start(
    environment: GroupEnvironment, group_id: str, topic: TopicImage, partition: int, why: Hold
) -> list[CoordinatorRecord]:
    """Return the commit of offset 0, for a group that has read the topic before and has no offset of this partition."""
    if why.committed is None or environment.offsets.offsets.get(group_id, topic.name, partition) is not None:
        return []
    start = OffsetAndMetadata(0, -1, "", environment.now_ms(), topic_id=topic.topic_id)
    return [offset_commit_record(group_id, topic.name, partition, start)]
