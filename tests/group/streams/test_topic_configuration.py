"""Partition counts of internal topics: what follows from what, and what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.group.streams.topic_configuration import ConfiguredTopology, StreamsStatus, configure_topics
from barnabas.group.streams.topology import StreamsTopology, topology_value
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.group.streams.host import Request, info

Subtopology = Request.Subtopology


def configured(topics: Mapping[str, int], *subtopologies: Subtopology) -> ConfiguredTopology:
    topology = StreamsTopology(topology_value(Request.Topology(epoch=4, subtopologies=list(subtopologies))))
    return configure_topics(topology, topics.get, 77)


def problem(topics: Mapping[str, int], *subtopologies: Subtopology) -> tuple[StreamsStatus, str]:
    found = configured(topics, *subtopologies).problem
    assert found is not None
    return found.status, found.detail


def counts(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.partitions for name, topic in found.to_create.items()}


def reads(name: str, *sources: str, **more: Any) -> Subtopology:
    return Subtopology(subtopology_id=name, source_topics=list(sources), **more)


def test_a_topology_of_sources_only_is_ready() -> None:
    found = configured({"x": 3, "y": 5}, reads("0", "x", "y"))
    assert found.is_ready
    assert found.subtopologies is not None
    assert found.subtopologies["0"].tasks == 5, "as many as the widest source"
    assert (found.topology_epoch, found.metadata_hash) == (4, 77)


def test_repartition_topics_pass_their_counts_on() -> None:
    chain = (
        reads("2", repartition_source_topics=[info("r2")], state_changelog_topics=[info("c")]),
        reads("1", repartition_source_topics=[info("r1")], repartition_sink_topics=["r2"]),
        reads("0", "x", repartition_sink_topics=["r1"]),
    )
    assert counts(configured({"x": 4}, *chain)) == {"r1": 4, "r2": 4, "c": 4}


def test_a_fixed_count_stays_and_is_passed_on() -> None:
    found = configured(
        {"x": 4},
        reads("0", "x", repartition_sink_topics=["r"]),
        reads("1", repartition_source_topics=[info("r", 7)], state_changelog_topics=[info("c")]),
    )
    assert counts(found) == {"r": 7, "c": 7}


def test_an_internal_topic_that_exists_decides_for_itself() -> None:
    status, detail = problem(
        {"x": 4, "r": 2},
        reads("0", "x", repartition_sink_topics=["r"]),
        reads("1", repartition_source_topics=[info("r")]),
    )
    assert status is StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Existing topic r has different number of partitions: expected 4, found 2"


def test_missing_sources_are_named_three_at_most() -> None:
    assert problem({}, reads("0", "e", "a", "d", "b", "c")) == (
        StreamsStatus.MISSING_SOURCE_TOPICS,
        "Source topics a, b, c and 2 additional topics are missing.",
    )


def join(sources: list[int], repartition: list[int]) -> list[Request.CopartitionGroup]:
    return [Request.CopartitionGroup(source_topics=sources, repartition_source_topics=repartition)]


def test_a_flexible_repartition_topic_is_as_wide_as_the_source_it_is_joined_with() -> None:
    found = configured(
        {"x": 2, "y": 6},
        reads("0", "x", repartition_sink_topics=["r"]),
        reads("1", "y", repartition_source_topics=[info("r")], copartition_groups=join([0], [0])),
    )
    assert counts(found) == {"r": 6}


def test_copartitioned_sources_must_be_alike() -> None:
    assert problem({"x": 2, "y": 6}, reads("0", "x", "y", copartition_groups=join([0, 1], []))) == (
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{x=2, y=6}]",
    )


def test_a_fixed_repartition_topic_must_fit_the_source() -> None:
    assert problem(
        {"x": 2, "y": 6},
        reads("0", "x", repartition_sink_topics=["r"]),
        reads("1", "y", repartition_source_topics=[info("r", 3)], copartition_groups=join([0], [0])),
    ) == (
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [6] of the source topic.",
    )


def test_repartition_topics_among_themselves() -> None:
    writers = reads("0", "x", repartition_sink_topics=["r"]), reads("1", "y", repartition_sink_topics=["s"])
    flexible = reads("2", repartition_source_topics=[info("r"), info("s")], copartition_groups=join([], [0, 1]))
    assert counts(configured({"x": 2, "y": 6}, *writers, flexible)) == {"r": 6, "s": 6}, "as the widest"
    one = reads("2", repartition_source_topics=[info("r", 5), info("s")], copartition_groups=join([], [0, 1]))
    assert counts(configured({"x": 2, "y": 6}, *writers, one)) == {"r": 5, "s": 5}, "as the fixed one"
    two = reads("2", repartition_source_topics=[info("r", 5), info("s", 4)], copartition_groups=join([], [0, 1]))
    assert problem({"x": 2, "y": 6}, *writers, two)[0] is StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS


@pytest.mark.parametrize(
    ("subtopologies", "words"),
    [
        ([reads("0", repartition_source_topics=[info("r")], repartition_sink_topics=["r"])], "loops"),
        ([reads("0", "x", repartition_source_topics=[info("r")])], "never used as a sink topic"),
        ([reads("0", state_changelog_topics=[info("c")])], "No source topics found for subtopology 0"),
    ],
)
def test_what_cannot_be_resolved(subtopologies: list[Subtopology], words: str) -> None:
    with pytest.raises(KafkaError, match=words) as raised:
        configured({"x": 1}, *subtopologies)
    assert raised.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize("group", [join([1], []), join([0], [0]), join([-1], [])])
def test_a_copartition_group_of_topics_that_are_not_there(group: list[Request.CopartitionGroup]) -> None:
    with pytest.raises(KafkaError) as raised:
        configured({"x": 1}, reads("0", "x", copartition_groups=group))
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_what_is_created() -> None:
    topic = info("c", cleanup_policy="compact")
    topic.replication_factor = 3
    found = configured({"x": 2}, reads("0", "x", state_changelog_topics=[topic, info("d")]))
    assert found.problem is not None
    assert found.problem.detail == "Internal topics are missing: c, d"
    made = found.to_create["c"].creatable()
    assert (made.name, made.num_partitions, made.replication_factor) == ("c", 2, 3)
    assert [(config.name, config.value) for config in made.configs] == [("cleanup.policy", "compact")]
    assert found.to_create["d"].creatable().replication_factor == -1
