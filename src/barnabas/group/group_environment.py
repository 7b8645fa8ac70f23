"""The services that all groups of one shard share.

The shard makes one `GroupEnvironment` and gives it to the part of each type (`ClassicGroups`, `ConsumerGroups`, …): settings, clock,
timers and randomness, the map of groups, the cluster's metadata, the subscribers of topics, and the history of rebalances.

Source: the fields of Kafka's class `GroupMetadataManager`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.group.group import Group
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.offset_store import OffsetStore
from barnabas.group.rebalance_history import RebalanceHistory
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid, uuid_to_str

G = TypeVar("G", bound=Group)


class TopicSubscribers:
    """Which groups consume a topic: kept by each group as its subscriptions change in `replay`."""

    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[str, None]] = {}

    def __repr__(self) -> str:
        return f"<TopicSubscribers {len(self._by_topic)} topics>"

    def __len__(self) -> int:
        """Return how many topics are consumed."""
        return len(self._by_topic)

    def __contains__(self, topic: str) -> bool:
        return topic in self._by_topic

    def add(self, group_id: str, topic: str) -> None:
        """Note that a group consumes a topic."""
        self._by_topic.setdefault(topic, {})[group_id] = None

    def remove(self, group_id: str, topic: str) -> None:
        """Note that a group no longer consumes a topic."""
        groups = self._by_topic.get(topic, {})
        groups.pop(group_id, None)
        if not groups:
            self._by_topic.pop(topic, None)

    def of(self, topic: str) -> list[str]:
        """Return the ids of the groups that consume a topic, in the order in which they subscribed."""
        return list(self._by_topic.get(topic, ()))


@dataclass(slots=True, kw_only=True)
class GroupEnvironment:
    """One shard's surroundings, and its groups.

    Attributes:
        now_ms: wall clock, epoch milliseconds.
        groups: of every type, by id; changed in `replay` only (classic groups, whose rebalances are not durable, excepted).
        image: the committed metadata as of now; call it again rather than keep the image.
        group_configs: the settings of single groups.
        offsets: the committed offsets of all groups; changed in `replay` only.
    """

    partition: int
    config: GroupCoordinatorConfig
    group_configs: GroupConfigs
    timer: CoordinatorTimer
    now_ms: Callable[[], int]
    rng: random.Random
    image: Callable[[], MetadataImage]
    history: RebalanceHistory
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
    subscribers: TopicSubscribers = field(default_factory=TopicSubscribers)
    topic_hashes: dict[str, int] = field(default_factory=dict)
    """Hashes of topics' metadata by name, dropped when the topic changes (`topic_hash`)."""
    is_loaded: bool = False
    """Whether the log has been replayed; later records are new."""
    last_new_topics_version: int = -1
    """The metadata offset of the newest topic that this shard has heard of."""

    def named(self, assignments: Mapping[str, Mapping[bytes, Iterable[int]]]) -> dict[str, frozenset[tuple[str, int]]]:
        """Return members' partitions by topic name, for people; deleted topics by their id."""
        topics = self.image().topics
        return {
            member_id: frozenset(
                (topics.name_of(topic_id) or uuid_to_str(Uuid(topic_id)), partition)
                for topic_id, partitions in assignment.items()
                for partition in partitions
            )
            for member_id, assignment in assignments.items()
        }

    def find(self, group_id: str, kind: type[G]) -> G | None:
        """The group of this id if it is of this type; None if it is absent or of another type."""
        group = self.groups.get(group_id)
        return group if isinstance(group, kind) else None

    def require(self, group_id: str, kind: type[G]) -> G:
        """The group of this id and type.

        Raises: KafkaError GROUP_ID_NOT_FOUND, also for a group of another type.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, kind):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind.type.value} group.")
        return group
