"""The topology of a Kafka Streams application, as its members describe it.

The first member to join describes the topology: its subtopologies, the topics each reads, the repartition topics between
them and the changelog topics of their state stores. The log keeps the description as it was sent
(`StreamsGroupTopologyValue`); all members must send an equal one, as it cannot be changed.

Sources: KIP-1071; Kafka classes `StreamsTopology`, `StreamsCoordinatorRecordHelpers.convertToStreamsGroupTopologyRecord`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.protocol.messages import (
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyValue,
)

Subtopology = StreamsGroupTopologyValue.Subtopology


class StreamsTopology:
    """Subtopologies by id, and which of them reads a topic.

    Attributes:
        epoch: grows with the application's versions; 0 for the first.
        source_topics: source and repartition source topics, with the subtopology that reads each.
        required_topics: every topic the application needs: sources, repartition and changelog topics.
    """

    __slots__ = ("epoch", "required_topics", "source_topics", "subtopologies")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.epoch = value.epoch
        self.subtopologies: Mapping[str, Subtopology] = {s.subtopology_id: s for s in value.subtopologies}
        self.source_topics: dict[str, Subtopology] = {}
        required: set[str] = set()
        for subtopology in self.subtopologies.values():
            names = [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
            self.source_topics.update(dict.fromkeys(names, subtopology))
            required.update(names)
            required.update(topic.name for topic in subtopology.state_changelog_topics)
        self.required_topics = frozenset(required)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamsTopology):
            return NotImplemented
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<StreamsTopology epoch={self.epoch} subtopologies={sorted(self.subtopologies)}>"

    def describe(self) -> StreamsGroupDescribeResponse.Topology:
        """Return the topology as the application sent it; partition counts that it left open are 0."""
        return StreamsGroupDescribeResponse.Topology(
            epoch=self.epoch,
            subtopologies=[_described(self.subtopologies[name]) for name in sorted(self.subtopologies)],
        )


def topology_value(topology: StreamsGroupHeartbeatRequest.Topology) -> StreamsGroupTopologyValue:
    """The record of the topology that a request describes."""
    Value = StreamsGroupTopologyValue
    return Value(
        epoch=topology.epoch,
        subtopologies=[
            Value.Subtopology(
                subtopology_id=subtopology.subtopology_id,
                source_topics=subtopology.source_topics,
                source_topic_regex=subtopology.source_topic_regex,
                repartition_sink_topics=subtopology.repartition_sink_topics,
                repartition_source_topics=[_topic(info) for info in subtopology.repartition_source_topics],
                state_changelog_topics=[_topic(info) for info in subtopology.state_changelog_topics],
                copartition_groups=[
                    Value.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in subtopology.copartition_groups
                ],
            )
            for subtopology in topology.subtopologies
        ],
    )


def _topic(info: StreamsGroupHeartbeatRequest.TopicInfo) -> StreamsGroupTopologyValue.TopicInfo:
    return StreamsGroupTopologyValue.TopicInfo(
        name=info.name,
        partitions=info.partitions,
        replication_factor=info.replication_factor,
        topic_configs=[StreamsGroupTopologyValue.TopicConfig(key=c.key, value=c.value) for c in info.topic_configs],
    )


def _described(subtopology: Subtopology) -> StreamsGroupDescribeResponse.Subtopology:
    def topics(infos: list[StreamsGroupTopologyValue.TopicInfo]) -> list[StreamsGroupDescribeResponse.TopicInfo]:
        return [
            StreamsGroupDescribeResponse.TopicInfo(
                name=info.name,
                partitions=info.partitions,
                replication_factor=info.replication_factor,
                topic_configs=[
                    StreamsGroupDescribeResponse.KeyValue(key=config.key, value=config.value)
                    for config in info.topic_configs
                ],
            )
            for info in sorted(infos, key=lambda info: info.name)
        ]

    return StreamsGroupDescribeResponse.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        repartition_source_topics=topics(subtopology.repartition_source_topics),
        state_changelog_topics=topics(subtopology.state_changelog_topics),
    )
