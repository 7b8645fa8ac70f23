"""`barnabas plan --topic`: the stream of an existing topic, and whether the topic has what its plan asks for.

Rate and size are those of `topic_sizes`; the size of a record is that of the leaders' logs by the number of their offsets.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.output import Table
from barnabas.cli.topic_sizes import first_since, seconds_of, stored_bytes
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicPartition, result
from barnabas.planning.plan import Plan
from barnabas.planning.quantities import per_second
from barnabas.planning.workload import Workload


class TopicFigures(NamedTuple):
    """An existing topic.

    Attributes:
        replicas: of the partition that has the fewest.
        rate: compressed bytes a second.
        busiest: the rate of the busiest partition.
        record_size: compressed bytes.
        retention_s: None for ever.
        segment: bytes.
        brokers: of the cluster.
    """

    topic: str
    partitions: int
    replicas: int
    rate: float
    busiest: float
    record_size: float
    retention_s: float | None
    segment: float
    brokers: int


def topic_figures(admin: Admin, topic: str, *, window_ms: int, now_ms: int) -> TopicFigures:
    """Return the figures of a topic.

    Raises:
        Failure: the topic got no record within the window.
        KafkaError: the topic does not exist, or the cluster does not answer.
    """
    found = result(admin.describe_topics([topic])[topic])
    leaders = {TopicPartition(topic, each.partition): each.leader for each in found.partitions}
    bounds = log_bounds(admin, leaders)
    ends = {at: (begin, end) for at, (begin, end) in bounds.items() if begin is not None and end is not None}
    first = first_since(admin, ends, now_ms - window_ms)
    if not first:
        raise Failure(
            f"topic {topic} got no record within the window", "--window 7d looks further back, and --rate gives a rate"
        )
    seconds = seconds_of(first, bounds, window_ms=window_ms, now_ms=now_ms)
    offsets = sum(end - begin for begin, end in ends.values())
    record_size = stored_bytes(admin, leaders)[topic].leaders / max(offsets, 1)
    rates = [(ends[at][1] - each.offset) * record_size / seconds for at, each in first.items()]
    settings = _settings(admin, topic)
    retention_ms = int(settings["retention.ms"])
    return TopicFigures(
        topic,
        len(leaders),
        min(len(each.replicas) for each in found.partitions),
        sum(rates),
        max(rates),
        record_size,
        None if retention_ms < 0 else retention_ms / 1000,
        float(settings["segment.bytes"]),
        len(admin.describe_cluster().brokers),
    )


def _settings(admin: Admin, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = result(admin.describe_configs([resource], names=["retention.ms", "segment.bytes"])[resource])
    return {entry.name: entry.value for entry in entries if entry.value is not None}


def judged(figures: TopicFigures, workload: Workload, found: Plan) -> Table:
    """Return a table that compares the topic with its plan."""
    partitions, busiest = found.choice.partitions, per_second(figures.busiest)
    alter = f"too few: `barnabas topic alter {figures.topic} -p {partitions}`, but keys move"
    rows = [
        ("partitions", figures.partitions, partitions, _verdict(figures.partitions >= partitions, alter)),
        ("replicas", figures.replicas, workload.replicas,
         _verdict(figures.replicas >= workload.replicas, "too few: a broker's death loses records")),
        ("brokers", figures.brokers, found.brokers, _verdict(figures.brokers >= found.brokers, "too few")),
        ("busiest partition", busiest, per_second(workload.partition_rate),
         _verdict(figures.busiest <= workload.partition_rate, "too hot: look for uneven keys")),
    ]  # fmt: skip
    return Table(("TOPIC", "NOW", "PLAN", "VERDICT"), rows, below=("VERDICT",))


def _verdict(is_enough: bool, otherwise: str) -> str:
    return "enough" if is_enough else otherwise
