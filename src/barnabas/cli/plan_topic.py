"""`barnabas plan --topic`: the stream of an existing topic, and whether the topic has what its plan asks for.

The rate is that of the records whose timestamps are within a window before now. The size of a record is that of the leaders' logs on
disk by the number of their offsets, so it is compressed. Both take what compaction removed, and markers of transactions, for records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.output import Table
from barnabas.client.admin import Admin, ConfigResource, OffsetAndTimestamp, ResourceType, TopicPartition, result
from barnabas.planning.plan import Plan
from barnabas.planning.quantities import per_second
from barnabas.planning.workload import Workload
from barnabas.protocol.errors import KafkaError


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
    first = {
        at: each
        for at, each in admin.list_offsets(dict.fromkeys(ends, now_ms - window_ms)).items()
        if isinstance(each, OffsetAndTimestamp) and each.offset >= 0
    }
    if not first:
        raise Failure(
            f"topic {topic} got no record within the window", "--window 7d looks further back, and --rate gives a rate"
        )
    # A topic that is younger than the window has its records since its first one.
    is_young = all(each.offset == ends[at][0] for at, each in first.items())
    oldest_ms = min(each.timestamp for each in first.values()) if is_young else now_ms - window_ms
    seconds = max(now_ms - oldest_ms, 1000) / 1000
    offsets = sum(end - begin for begin, end in ends.values())
    record_size = _leaders_bytes(admin, leaders) / max(offsets, 1)
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


def _leaders_bytes(admin: Admin, leaders: Mapping[TopicPartition, int]) -> int:
    total = 0
    for broker, folders in admin.describe_log_dirs(partitions=leaders).items():
        if isinstance(folders, KafkaError):
            raise folders
        for folder in folders:
            sizes = [each for each in folder.replicas if leaders.get(each.partition) == broker and not each.is_future]
            total += sum(each.size_in_bytes for each in sizes)
    return total


def _settings(admin: Admin, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = result(admin.describe_configs([resource], names=["retention.ms", "segment.bytes"])[resource])
    return {entry.name: entry.value for entry in entries if entry.value is not None}


def judged(figures: TopicFigures, workload: Workload, found: Plan) -> Table:
    """Return a table of the topic's figures and of those that the plan asks for."""
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
