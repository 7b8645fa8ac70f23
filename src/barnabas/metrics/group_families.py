"""Groups and their lag, in records and in seconds, under the names of two exporters.

    kafka_consumergroup_*          as kafka_exporter: consumergroup, topic, partition
    kafka_consumergroup_group_*    as Kafka Lag Exporter: cluster_name, group, topic, partition, and the member that owns it
    barnabas_consumergroup_*       verdicts by Burrow's rules (`lag_windows`): 0 OK, 1 WARN, 2 STALL, 3 STOP, 4 REWIND

- Lag ends at the last stable offset: a consumer of committed records cannot read the records of an open transaction.
- Lag in seconds is the age of the oldest record that the group has not read, by the record's timestamp. It needs no history and is
  right after a restart; Kafka Lag Exporter interpolates between its own observations instead. Within a batch the time is interpolated
  between the batch's first and last timestamp. A timestamp is kept until the group's offset moves.
- The coordinating broker reports groups of all types with committed offsets. A partition that another broker leads, or an offset
  beyond the log, has no lag.

Sources: kafka_exporter's and Kafka Lag Exporter's READMEs; Kafka's `GroupCoordinatorMetrics`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.client.lag_verdicts import Sample, Verdict
from barnabas.group.group import Group, GroupType
from barnabas.group.offset_store import TopicOffsets
from barnabas.log.partition_log import PartitionLog
from barnabas.metrics.exposition import Family, family, labels
from barnabas.metrics.group_owners import NOBODY, Owner, owners
from barnabas.metrics.lag_windows import LagWindows
from barnabas.metrics.source import PartitionRow, Source
from barnabas.protocol.errors import KafkaError

__all__ = ["GroupFamilies"]

# Topic, partition, offset and the log's incarnation to the timestamp of the record there.
_Known = dict[tuple[str, str, int], tuple[int, int, int]]


class _Place(NamedTuple):
    """A group's position in one partition; an unknown lag is -1, and a verdict that cannot be given yet is None."""

    group: str
    topic: str
    partition: int
    offset: int
    lag: int
    lag_seconds: float
    owner: Owner
    verdict: Verdict | None


class GroupFamilies:
    """The families of groups; keeps timestamps and samples of the lag between scrapes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._timestamps: _Known = {}
        self._windows = LagWindows()

    def families(self, rows: Mapping[tuple[str, int], PartitionRow], cluster_name: str) -> Iterator[Family]:
        """Yield every family of groups, and empty texts where the loop may get a turn.

        Args:
            rows: partitions by topic and index.
        """
        groups: dict[str, Group] = {}
        committed: list[tuple[str, TopicOffsets]] = []
        for shard in self._source.services.group_coordinator.active_shards():
            groups.update(shard.groups)
            committed += shard.committed_offsets.items()
        known: _Known = {}
        places: list[_Place] = []
        for group_id, topics in committed:
            places += self._places(group_id, groups.get(group_id), topics, rows, known)
            yield ""
        self._timestamps = known
        self._windows.end_scrape()
        yield from _counts(groups)
        yield from _exporter(groups, places)
        yield from _lag_exporter(places, cluster_name)
        yield from _verdicts(places)

    def _places(
        self,
        group_id: str,
        group: Group | None,
        topics: TopicOffsets,
        rows: Mapping[tuple[str, int], PartitionRow],
        known: _Known,
    ) -> list[_Place]:
        now_ms = self._source.services.now_ms()
        owned = {} if group is None else owners(group, self._source.services.image())
        has_members = group is not None and group.member_count > 0
        places = []
        for topic, partitions in topics.items():
            for partition, committed in partitions.items():
                offset = committed.committed_offset
                row = rows.get((topic, partition))
                lag, seconds = -1, -1.0
                if row is not None and row.replica is not None and row.replica.is_leader:
                    lag, seconds = self._lag(known, (group_id, topic, partition), offset, row.log, now_ms)
                verdict = None
                if lag >= 0:
                    where = (group_id, topic, partition)
                    verdict = self._windows.verdict(where, Sample(offset, lag), now_ms, has_members=has_members)
                owner = owned.get((topic, partition), NOBODY)
                places.append(_Place(group_id, topic, partition, offset, lag, seconds, owner, verdict))
        return places

    def _lag(
        self, known: _Known, key: tuple[str, str, int], offset: int, log: PartitionLog | None, now_ms: int
    ) -> tuple[int, float]:
        if log is None:
            return (0, 0.0) if offset == 0 else (-1, -1.0)
        end = log.last_stable_offset
        if offset >= end:
            return (0, 0.0) if offset <= log.log_end_offset else (-1, -1.0)
        # Retention may have deleted the record; the oldest remaining one counts.
        at = max(offset, log.log_start_offset)
        before = self._timestamps.get(key)
        if before is not None and before[:2] == (id(log), at):
            found = before
        else:
            found = (id(log), at, _timestamp_at(log, at, end))
        known[key] = found
        return end - offset, max(0.0, (now_ms - found[2]) / 1000) if found[2] >= 0 else -1.0


def _timestamp_at(log: PartitionLog, offset: int, end: int) -> int:
    """Return the timestamp of the first record at or after an offset; -1 if the log cannot be read."""
    try:
        piece = log.read(offset, 1, max_offset=end)
        for _, header in piece.headers():
            if header.last_offset >= offset:
                if header.base_timestamp < 0 or header.has_delete_horizon:
                    return header.max_timestamp
                share = max(0, offset - header.base_offset) / max(header.last_offset_delta, 1)
                return int(header.base_timestamp + (header.max_timestamp - header.base_timestamp) * share)
    except KafkaError:
        pass
    return -1


def _counts(groups: Mapping[str, Group]) -> Iterator[Family]:
    by_type = Counter(group.type for group in groups.values())
    yield family(
        "kafka_server_group_coordinator_metrics_group_count",
        "gauge",
        "Groups that this broker coordinates, by protocol.",
        ((labels({"protocol": kind.value}), by_type[kind]) for kind in GroupType),
    )
    by_state = Counter((group.type.value, group.state_name()) for group in groups.values())
    yield family(
        "barnabas_group_state_count",
        "gauge",
        "Groups by protocol and state.",
        ((labels({"protocol": kind, "state": state}), count) for (kind, state), count in sorted(by_state.items())),
    )


def _exporter(groups: Mapping[str, Group], places: list[_Place]) -> Iterator[Family]:
    tagged = [
        (labels({"consumergroup": place.group, "topic": place.topic, "partition": place.partition}), place)
        for place in places
    ]
    yield family(
        "kafka_consumergroup_current_offset",
        "gauge",
        "Committed offset of a group.",
        ((tags, place.offset) for tags, place in tagged),
    )
    yield family(
        "kafka_consumergroup_lag",
        "gauge",
        "Records up to the last stable offset that a group has not committed.",
        ((tags, place.lag) for tags, place in tagged if place.lag >= 0),
    )
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for place in places:
        total = sums[place.group, place.topic]
        total[0] += place.offset
        total[1] += max(place.lag, 0)
    by_topic = [
        (labels({"consumergroup": group, "topic": topic}), total) for (group, topic), total in sorted(sums.items())
    ]
    yield family(
        "kafka_consumergroup_current_offset_sum",
        "gauge",
        "Sum of a group's committed offsets in a topic.",
        ((tags, total[0]) for tags, total in by_topic),
    )
    yield family(
        "kafka_consumergroup_lag_sum",
        "gauge",
        "Sum of a group's lag in a topic.",
        ((tags, total[1]) for tags, total in by_topic),
    )
    yield family(
        "kafka_consumergroup_members",
        "gauge",
        "Members of a group.",
        ((labels({"consumergroup": name}), group.member_count) for name, group in sorted(groups.items())),
    )


def _lag_exporter(places: list[_Place], cluster_name: str) -> Iterator[Family]:
    cluster = {"cluster_name": cluster_name}
    tagged = [
        (
            labels(
                {
                    **cluster,
                    "group": place.group,
                    "topic": place.topic,
                    "partition": place.partition,
                    "member_host": place.owner.host,
                    "consumer_id": place.owner.member_id,
                    "client_id": place.owner.client_id,
                }
            ),
            place,
        )
        for place in places
    ]
    yield family(
        "kafka_consumergroup_group_offset",
        "gauge",
        "Committed offset of a group.",
        ((tags, place.offset) for tags, place in tagged),
    )
    yield family(
        "kafka_consumergroup_group_lag",
        "gauge",
        "Records up to the last stable offset that a group has not committed.",
        ((tags, place.lag) for tags, place in tagged if place.lag >= 0),
    )
    yield family(
        "kafka_consumergroup_group_lag_seconds",
        "gauge",
        "Age of the oldest record that a group has not read.",
        ((tags, place.lag_seconds) for tags, place in tagged if place.lag_seconds >= 0),
    )
    by_group: dict[str, list[_Place]] = defaultdict(list)
    by_topic: Counter[tuple[str, str]] = Counter()
    for place in places:
        by_group[place.group].append(place)
        by_topic[place.group, place.topic] += max(place.lag, 0)
    grouped = [(labels({**cluster, "group": name}), of_group) for name, of_group in sorted(by_group.items())]
    yield family(
        "kafka_consumergroup_group_max_lag",
        "gauge",
        "Largest lag of a group in one partition.",
        ((tags, max(max(place.lag, 0) for place in of_group)) for tags, of_group in grouped),
    )
    yield family(
        "kafka_consumergroup_group_max_lag_seconds",
        "gauge",
        "Largest lag of a group in seconds.",
        ((tags, max(max(place.lag_seconds, 0.0) for place in of_group)) for tags, of_group in grouped),
    )
    yield family(
        "kafka_consumergroup_group_sum_lag",
        "gauge",
        "Lag of a group in all partitions.",
        ((tags, sum(max(place.lag, 0) for place in of_group)) for tags, of_group in grouped),
    )
    yield family(
        "kafka_consumergroup_group_topic_sum_lag",
        "gauge",
        "Lag of a group in all partitions of a topic.",
        (
            (labels({**cluster, "group": group, "topic": topic}), lag)
            for (group, topic), lag in sorted(by_topic.items())
        ),
    )


def _verdicts(places: list[_Place]) -> Iterator[Family]:
    judged = [(place, place.verdict) for place in places if place.verdict is not None]
    yield family(
        "barnabas_consumergroup_partition_verdict",
        "gauge",
        "Verdict about a group in a partition by Burrow's rules: 0 OK, 1 WARN, 2 STALL, 3 STOP, 4 REWIND.",
        (
            (labels({"consumergroup": place.group, "topic": place.topic, "partition": place.partition}), verdict.value)
            for place, verdict in judged
        ),
    )
    worst: dict[str, int] = {}
    for place, verdict in judged:
        worst[place.group] = max(worst.get(place.group, 0), verdict.value)
    yield family(
        "barnabas_consumergroup_verdict",
        "gauge",
        "The worst verdict about a group in a partition.",
        ((labels({"consumergroup": name}), value) for name, value in sorted(worst.items())),
    )
