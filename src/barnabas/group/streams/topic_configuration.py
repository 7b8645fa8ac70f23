"""How many partitions a topology's internal topics get, and which are missing.

A topology fixes few partition counts: source topics have theirs already, and some repartition topics name one
(`Repartitioned.withNumberOfPartitions`). All the others follow, in this order:

    source topics exist                    or MISSING_SOURCE_TOPICS
    repartition topics                     as many as the widest topic that their writer reads, until nothing changes
    copartition groups                     all alike: as the sources, or as a fixed repartition topic, or as the widest
    changelog topics                       as many as the widest topic that their subtopology reads
    tasks of a subtopology                 as many as the widest topic it reads
    every internal topic                   exists with that many partitions, is to be created, or INCORRECTLY_PARTITIONED_TOPICS

A topology that cannot be resolved (a loop of repartition topics, a subtopology without sources) is STREAMS_INVALID_TOPOLOGY for the
request that brings it; the rest are statuses that the heartbeat carries until an operator, or this broker, has made the topics.

Sources: KIP-1071; Kafka classes `InternalTopicManager`, `RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum

from barnabas.group.streams.topology import StreamsTopology, Subtopology
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest, StreamsGroupDescribeResponse, StreamsGroupTopologyValue

PartitionCount = Callable[[str], int | None]
"""How many partitions a topic has now, or None when there is no such topic."""

TOPICS_SHOWN = 3
BROKER_DEFAULT = -1


class StreamsStatus(IntEnum):
    """The statuses that a heartbeat's response can report in addition to its error code (KIP-1071)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


@dataclass(frozen=True, slots=True)
class TopicProblem:
    """Why a topology is not ready."""

    status: StreamsStatus
    detail: str


class _NotReadyError(Exception):
    def __init__(self, status: StreamsStatus, detail: str) -> None:
        super().__init__(detail)
        self.problem = TopicProblem(status, detail)


@dataclass(frozen=True, slots=True)
class ConfiguredInternalTopic:
    """A repartition or changelog topic with its number of partitions; a replication factor of None is the broker's default."""

    name: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str]

    def creatable(self) -> CreateTopicsRequest.CreatableTopic:
        return CreateTopicsRequest.CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=BROKER_DEFAULT if self.replication_factor is None else self.replication_factor,
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=k, value=v) for k, v in self.configs.items()],
        )

    def describe(self) -> StreamsGroupDescribeResponse.TopicInfo:
        return StreamsGroupDescribeResponse.TopicInfo(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor or 0,
            topic_configs=[StreamsGroupDescribeResponse.KeyValue(key=k, value=v) for k, v in self.configs.items()],
        )


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with its number of tasks; not every source topic need have a partition for every task."""

    tasks: int
    source_topics: frozenset[str]
    repartition_source_topics: Mapping[str, ConfiguredInternalTopic]
    repartition_sink_topics: frozenset[str]
    state_changelog_topics: Mapping[str, ConfiguredInternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)

    def describe(self, subtopology_id: str) -> StreamsGroupDescribeResponse.Subtopology:
        def topics(infos: Mapping[str, ConfiguredInternalTopic]) -> list[StreamsGroupDescribeResponse.TopicInfo]:
            return [infos[name].describe() for name in sorted(infos)]

        return StreamsGroupDescribeResponse.Subtopology(
            subtopology_id=subtopology_id,
            source_topics=sorted(self.source_topics),
            repartition_sink_topics=sorted(self.repartition_sink_topics),
            repartition_source_topics=topics(self.repartition_source_topics),
            state_changelog_topics=topics(self.state_changelog_topics),
        )


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with the topics that exist.

    Attributes:
        metadata_hash: of the topics it rests on; with another hash it must be made again.
        subtopologies: in the order of their ids; None when sources are missing or partitions do not fit.
        to_create: the internal topics that are missing.
        problem: why no tasks can be assigned; None if the topology is ready.
    """

    topology_epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    to_create: Mapping[str, ConfiguredInternalTopic]
    problem: TopicProblem | None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    def describe(self) -> StreamsGroupDescribeResponse.Topology:
        return StreamsGroupDescribeResponse.Topology(
            epoch=self.topology_epoch,
            subtopologies=[s.describe(name) for name, s in (self.subtopologies or {}).items()],
        )


def configure_topics(
    topology: StreamsTopology, partition_count: PartitionCount, metadata_hash: int
) -> ConfiguredTopology:
    """Decide the partitions of a topology's internal topics and compare them with the topics that there are.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY when no number of partitions would do, INVALID_REQUEST for an index outside a list.
    """
    try:
        _check_sources(topology, partition_count)
        decided = _decide(topology, partition_count)
        subtopologies = {
            name: _configured(topology.subtopologies[name], decided) for name in sorted(topology.subtopologies)
        }
        missing = _missing(subtopologies, partition_count)
    except _NotReadyError as error:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, {}, error.problem)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        problem = TopicProblem(StreamsStatus.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, metadata_hash, subtopologies, missing, problem)


def _summary(topics: Collection[str]) -> str:
    shown = ", ".join(list(topics)[:TOPICS_SHOWN])
    more = len(topics) - TOPICS_SHOWN
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _check_sources(topology: StreamsTopology, partition_count: PartitionCount) -> None:
    sources = {topic for subtopology in topology.subtopologies.values() for topic in subtopology.source_topics}
    missing = sorted(topic for topic in sources if partition_count(topic) is None)
    if missing:
        raise _NotReadyError(StreamsStatus.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


class _Decided:
    """Partition counts as they are being decided; a topic that exists keeps its own."""

    def __init__(self, existing: PartitionCount) -> None:
        self.existing = existing
        self.counts: dict[str, int] = {}

    def get(self, topic: str) -> int | None:
        count = self.existing(topic)
        return self.counts.get(topic) if count is None else count

    def of(self, topic: str) -> int:
        count = self.get(topic)
        if count is None:
            raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Number of partitions must be set for topic {topic}")
        return count

    def widest(self, subtopology: Subtopology) -> int:
        names = [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
        if not names:
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"No source topics found for subtopology {subtopology.subtopology_id}",
            )
        return max(self.of(name) for name in names)


def _decide(topology: StreamsTopology, partition_count: PartitionCount) -> _Decided:
    subtopologies = list(topology.subtopologies.values())
    decided = _Decided(partition_count)
    decided.counts.update(_repartition_counts(subtopologies, partition_count))
    sources = [topic for s in subtopologies for topic in s.repartition_source_topics]
    fixed = {topic.name for topic in sources if topic.partitions}
    flexible = {topic.name for topic in sources if not topic.partitions}
    for subtopology in subtopologies:
        for group in _copartition_groups(subtopology):
            decided.counts.update(_copartitioned(group, fixed, flexible, decided))
    for subtopology in subtopologies:
        widest = decided.widest(subtopology)
        decided.counts.update(dict.fromkeys((topic.name for topic in subtopology.state_changelog_topics), widest))
    return decided


# Repartition topics


def _repartition_counts(subtopologies: list[Subtopology], partition_count: PartitionCount) -> dict[str, int]:
    """Return the counts of the repartition topics, passed on from subtopology to subtopology until all have one."""
    counts = {t.name: t.partitions for s in subtopologies for t in s.repartition_source_topics if t.partitions}
    while True:
        open_sinks = progress = False
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink in counts:
                    continue
                count = _read_by(subtopology, counts, partition_count)
                if count is None:
                    open_sinks = True
                else:
                    counts[sink] = count
                    progress = True
        if not open_sinks:
            break
        if not progress:
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved.",
            )
    if any(topic.name not in counts for s in subtopologies for topic in s.repartition_source_topics):
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, because "
            "a repartition source topic is never used as a sink topic.",
        )
    return counts


def _read_by(subtopology: Subtopology, counts: Mapping[str, int], partition_count: PartitionCount) -> int | None:
    known = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
    known += [partition_count(topic) for topic in subtopology.source_topics]
    return max((count for count in known if count is not None), default=None)


# Copartitioning


def _copartition_groups(subtopology: Subtopology) -> Iterable[frozenset[str]]:
    sources, repartition = subtopology.source_topics, subtopology.repartition_source_topics
    for group in subtopology.copartition_groups:
        for indexes, names in ((group.source_topics, sources), (group.repartition_source_topics, repartition)):
            if any(not 0 <= index < len(names) for index in indexes):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"A copartition group of subtopology {subtopology.subtopology_id} names a topic that it does not have.",
                )
        yield frozenset(
            [sources[index] for index in group.source_topics]
            + [repartition[index].name for index in group.repartition_source_topics]
        )


def _copartitioned(group: Set[str], fixed: Set[str], flexible: Set[str], decided: _Decided) -> dict[str, int]:
    """The count that all repartition topics of a group get."""
    if not group:
        return {}
    repartition = {topic: decided.of(topic) for topic in group if topic in fixed or topic in flexible}
    others = {topic: decided.of(topic) for topic in group if topic not in repartition}
    if others:
        count = _alike(others, others)
    elif fixed:
        # Every fixed topic of the topology counts, not only those of this group: so does Kafka.
        count = _alike({topic: decided.of(topic) for topic in fixed}, repartition)
    else:
        count = max(repartition.values())
    for topic, has in sorted(repartition.items()):
        if topic in fixed and has != count:
            raise _NotReadyError(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{has}] of repartition topic [{topic}] doesn't match number of partitions "
                f"[{count}] of the source topic.",
            )
    return dict.fromkeys(repartition, count)


def _alike(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        topics = ", ".join(f"{topic}={count}" for topic, count in sorted(shown.items()))
        raise _NotReadyError(
            StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{topics}}}]",
        )
    return next(iter(counts.values()))


# The outcome


def _configured(subtopology: Subtopology, decided: _Decided) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        tasks=decided.widest(subtopology),
        source_topics=frozenset(subtopology.source_topics),
        repartition_source_topics=_internal(subtopology.repartition_source_topics, decided),
        repartition_sink_topics=frozenset(subtopology.repartition_sink_topics),
        state_changelog_topics=_internal(subtopology.state_changelog_topics, decided),
    )


def _internal(
    infos: list[StreamsGroupTopologyValue.TopicInfo], decided: _Decided
) -> dict[str, ConfiguredInternalTopic]:
    return {
        info.name: ConfiguredInternalTopic(
            name=info.name,
            partitions=info.partitions or decided.counts[info.name],
            replication_factor=info.replication_factor or None,
            configs={config.key: config.value for config in info.topic_configs},
        )
        for info in infos
    }


def _missing(
    subtopologies: Mapping[str, ConfiguredSubtopology], partition_count: PartitionCount
) -> dict[str, ConfiguredInternalTopic]:
    """The internal topics that do not exist; one that exists must have the partitions expected of it."""
    missing: dict[str, ConfiguredInternalTopic] = {}
    for subtopology in subtopologies.values():
        for topic in (*subtopology.repartition_source_topics.values(), *subtopology.state_changelog_topics.values()):
            found = partition_count(topic.name)
            if found is None:
                missing[topic.name] = topic
            elif found != topic.partitions:
                raise _NotReadyError(
                    StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: "
                    f"expected {topic.partitions}, found {found}",
                )
    return missing
