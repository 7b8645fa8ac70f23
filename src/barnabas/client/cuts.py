"""Cuts: named vectors of offsets, one for each partition of chosen topics, stored in the cluster.

    {"version": 1, "created_ms": …, "at_ms": null, "isolation": "read_committed",
     "topics": {"orders": {"id": "AAECAwQFBgcICQoLDA0ODw", "offsets": {"0": 1288210, "1": 1288211}}}}

An offset is the first record *after* the cut, as the offsets that groups commit. The topic `__barnabas_cuts` keeps them (`CompactedTopic`):
unlike a group's offsets they do not expire.

A cut is not a snapshot of the cluster: no broker stops for it. What `take_cut` promises:

- In each partition the cut is the end at one moment between the call and its return. What was acknowledged by all replicas before the call
  is before the cut, a record that is sent after the return is behind it.
- With READ_COMMITTED the end is the last stable offset. Before it every transaction is decided.
- The topics are asked in the order given, each after the answers about the one before. So if a program reads topic A and writes topic B, a
  cut of `[B, A]` holds the cause of everything that it holds: the records of A that made the records of B.
- Otherwise nothing holds between two partitions: of a transaction in two partitions one half may be before the cut, the other behind it.

Topic ids are kept, so that offsets of a topic which was deleted and created again are recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.client.offsets import LATEST, READ_COMMITTED, READ_UNCOMMITTED, OffsetAndTimestamp, list_offsets
from barnabas.client.outcome import results
from barnabas.client.topics import describe_topics
from barnabas.protocol.primitives import uuid_to_str

CUTS_TOPIC = "__barnabas_cuts"
_VERSION = 1
_ISOLATION = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Cut:
    """A cut.

    Attributes:
        offsets: the first offset after the cut, by partition.
        topic_ids: of the topics when the cut was taken.
        isolation: `read_committed` or `read_uncommitted`.
        created_ms: when it was taken, by the clock of the machine that took it.
        at_ms: the timestamp it was taken at; None for the ends.
    """

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    isolation: str
    created_ms: int
    at_ms: int | None = None

    @property
    def topics(self) -> list[str]:
        """The names of its topics."""
        return list(self.topic_ids)

    def to_json(self) -> bytes:
        """Return the value of the cut's record."""
        topics = {
            name: {
                "id": topic_id,
                "offsets": {str(at.partition): offset for at, offset in self.offsets.items() if at.topic == name},
            }
            for name, topic_id in self.topic_ids.items()
        }
        fields = {
            "version": _VERSION,
            "created_ms": self.created_ms,
            "at_ms": self.at_ms,
            "isolation": self.isolation,
            "topics": topics,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Cut:
        """Read the value of a cut's record.

        Raises:
            ValueError: a newer release wrote it.
        """
        fields = json.loads(value)
        if fields["version"] != _VERSION:
            raise ValueError(
                f"{CUTS_TOPIC} has a cut of version {fields['version']}: this release is too old to read it"
            )
        offsets = {
            TopicPartition(name, int(partition)): offset
            for name, topic in fields["topics"].items()
            for partition, offset in topic["offsets"].items()
        }
        ids = {name: topic["id"] for name, topic in fields["topics"].items()}
        return cls(offsets, ids, fields["isolation"], fields["created_ms"], fields["at_ms"])


def is_valid_cut_name(name: str) -> bool:
    """Return whether a cut may have this name: that of a topic."""
    return _NAME.fullmatch(name) is not None


def take_cut(
    cluster: Cluster,
    topics: Sequence[str],
    *,
    now_ms: int,
    at_ms: int | None = None,
    isolation: str = "read_committed",
) -> Cut:
    """Return the ends of all partitions of some topics, asked in this order; nothing is stored.

    Args:
        now_ms: kept as the time of the cut.
        at_ms: before the first record at or after this timestamp instead; at the end if no record is that late.

    Raises:
        KafkaError: a topic does not exist, or a partition has no leader until the cluster's deadline.
    """
    level = _ISOLATION[isolation]
    described = results(describe_topics(cluster, topics))
    offsets: dict[TopicPartition, int] = {}
    for name in topics:
        partitions = [TopicPartition(name, each.partition) for each in described[name].partitions]
        ends = _offsets(cluster, dict.fromkeys(partitions, LATEST), level)
        if at_ms is not None:
            found = _offsets(cluster, dict.fromkeys(partitions, at_ms), level)
            ends = {at: found[at] if found[at] >= 0 else end for at, end in ends.items()}
        offsets |= ends
    ids = {name: uuid_to_str(described[name].topic_id) for name in topics}
    return Cut(offsets, ids, isolation, now_ms, at_ms)


def _offsets(cluster: Cluster, positions: Mapping[TopicPartition, int], level: int) -> dict[TopicPartition, int]:
    found = list_offsets(cluster, positions, isolation_level=level)
    answers: dict[TopicPartition, OffsetAndTimestamp] = results(found)
    return {at: answer.offset for at, answer in sorted(answers.items())}


def list_cuts(cluster: Cluster) -> dict[str, Cut]:
    """Return the stored cuts by name, sorted.

    Raises:
        KafkaError: the cuts cannot be read.
        ValueError: a newer release wrote one of them.
    """
    return {name: Cut.from_json(value) for name, value in CompactedTopic(cluster, CUTS_TOPIC).items().items()}


def store_cut(cluster: Cluster, name: str, cut: Cut) -> None:
    """Store a cut under a name, in the place of an older one.

    Raises:
        KafkaError: it may not be stored.
    """
    assert is_valid_cut_name(name)
    CompactedTopic(cluster, CUTS_TOPIC).put(name, cut.to_json(), cut.created_ms)


def delete_cuts(cluster: Cluster, names: Iterable[str], *, now_ms: int) -> None:
    """Delete cuts by name; a name without a cut is no error.

    Raises:
        KafkaError: some may be left.
    """
    table = CompactedTopic(cluster, CUTS_TOPIC)
    for name in names:
        table.put(name, None, now_ms)


def current_topic_ids(cluster: Cluster, cut: Cut) -> dict[str, str | None]:
    """Return the ids that the topics of a cut have now; None for a topic that does not exist."""
    found = cluster.retry(lambda: cluster.metadata(cut.topics)).topics
    return {name: uuid_to_str(found[name].topic_id) if name in found else None for name in cut.topics}
