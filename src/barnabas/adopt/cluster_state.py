"""Everything that `barnabas adopt check` has read of a running cluster, as one value: the checks are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.admin import (
    ConfigEntry,
    GroupDescription,
    GroupListing,
    LogDir,
    PartitionDescription,
    Quota,
    TopicMetadata,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.features import BrokerFeatures
from barnabas.client.scram_users import ScramUser
from barnabas.security.acls import AclBinding

__all__ = ["ClusterState", "Problem", "Settings", "Unseen"]

Settings = Mapping[str, Sequence[ConfigEntry]]
"""By the name of a topic, a group or a metrics subscription."""


class Problem(NamedTuple):
    """A fault of the cluster, as `barnabas cluster status` names it."""

    problem: str
    where: Sequence[str]
    remedy: str


class Unseen(NamedTuple):
    """A thing that could not be looked at, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class ClusterState:
    """A cluster at the time of the check. What could not be read is empty, and named in `unseen`.

    Attributes:
        brokers: the ids of those that serve; `fenced` of those that do not.
        barnabas: the ids of those that are barnabas already.
        voters: the ids of the quorum.
        problems: None if the health could not be read.
        moving: the number of partitions whose replicas move.
        broker_settings: each broker's settings, with the source of each.
        topic_settings, group_settings, client_metrics: the settings that were set for each; of topics min.insync.replicas too.
        acls: None if the cluster has no authorizer.
        tokens: the number of delegation tokens; None if the cluster has none.
        now_ms: of this machine, in epoch milliseconds.
    """

    cluster_id: str | None
    brokers: tuple[int, ...]
    fenced: tuple[int, ...] = ()
    barnabas: frozenset[int] = frozenset()
    voters: tuple[int, ...] = ()
    problems: Sequence[Problem] | None = ()
    moving: int = 0
    partitions: Mapping[TopicPartition, PartitionDescription] = field(default_factory=dict)
    topics: Sequence[TopicMetadata] = ()
    features: Mapping[int, BrokerFeatures] = field(default_factory=dict)
    broker_settings: Mapping[int, Sequence[ConfigEntry]] = field(default_factory=dict)
    topic_settings: Settings = field(default_factory=dict)
    group_settings: Settings = field(default_factory=dict)
    client_metrics: Settings = field(default_factory=dict)
    log_dirs: Mapping[int, Sequence[LogDir]] = field(default_factory=dict)
    groups: Sequence[GroupListing] = ()
    group_descriptions: Mapping[str, GroupDescription] = field(default_factory=dict)
    transactions: Sequence[TransactionListing] = ()
    open_transactions: Mapping[str, TransactionDescription] = field(default_factory=dict)
    quotas: Sequence[Quota] = ()
    users: Sequence[ScramUser] = ()
    acls: Sequence[AclBinding] | None = None
    tokens: int | None = None
    now_ms: int = 0
    unseen: Sequence[Unseen] = ()
