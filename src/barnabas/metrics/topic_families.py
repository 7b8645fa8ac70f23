"""Topics and partitions, under the names of three exporters.

    kafka_server_brokertopicmetrics_*, kafka_cluster_partition_*, kafka_log_*    as the JMX exporter with Strimzi's rules
    kafka_topic_*                                                                as kafka_exporter
    kafka_partition_*                                                            as Kafka Lag Exporter

- Traffic has a sample without labels for all topics, deleted ones included, and one for each topic with traffic. Both spellings of
  the names are served, with and without `persec`.
- Latest offsets are high watermarks: the end for a consumer that reads uncommitted records.

Sources: Strimzi's example rules and dashboards, kafka_exporter's README, Kafka Lag Exporter's README.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from barnabas.metrics.exposition import Family, family, family_in_pieces, labels
from barnabas.metrics.source import PartitionRow, Source
from barnabas.replication.topic_traffic import TopicTraffic

__all__ = ["families"]

_TRAFFIC: tuple[tuple[str, str, Callable[[TopicTraffic], int]], ...] = (
    ("messagesin", "Records appended.", lambda t: t.messages_in),
    ("bytesin", "Bytes of batches appended.", lambda t: t.bytes_in),
    ("bytesout", "Bytes of batches sent to consumers.", lambda t: t.bytes_out),
    ("totalproducerequests", "Appends to partitions.", lambda t: t.produces),
    ("totalfetchrequests", "Reads of partitions.", lambda t: t.fetches),
    ("failedproducerequests", "Appends to partitions that failed.", lambda t: t.failed_produces),
    ("failedfetchrequests", "Reads of partitions that failed.", lambda t: t.failed_fetches),
)


def families(source: Source, rows: Sequence[PartitionRow], cluster_name: str) -> Iterator[Family]:
    """Yield every family of topics and partitions."""
    yield from _traffic(source)
    yield from _replicas(rows)
    yield from _exporter(source, rows)
    cluster = labels({"cluster_name": cluster_name})
    yield from family_in_pieces(
        "kafka_partition_latest_offset",
        "gauge",
        "High watermark of a partition.",
        ((f"{cluster},{row.labels}", _latest(row)) for row in rows),
    )
    yield from family_in_pieces(
        "kafka_partition_earliest_offset",
        "gauge",
        "Log start offset of a partition.",
        ((f"{cluster},{row.labels}", _earliest(row)) for row in rows),
    )


def _traffic(source: Source) -> Iterator[Family]:
    replicas = source.services.replica_manager
    total = TopicTraffic()
    total.add(replicas.departed_traffic)
    with_traffic: dict[str, TopicTraffic] = {}
    for name, topic in list(replicas.topics.items()):
        total.add(topic.traffic)
        if topic.traffic.produces or topic.traffic.fetches:
            with_traffic[name] = topic.traffic
        yield ""
    by_topic = [("", total), *((labels({"topic": name}), with_traffic[name]) for name in sorted(with_traffic))]
    for name, text, of in _TRAFFIC:
        for suffix in ("", "persec"):
            samples = ((tags, of(traffic)) for tags, traffic in by_topic)
            whole = f"kafka_server_brokertopicmetrics_{name}{suffix}_total"
            yield from family_in_pieces(whole, "counter", text, samples)


def _replicas(rows: Sequence[PartitionRow]) -> Iterator[Family]:
    here = [(row.labels, row.replica, row.min_isr) for row in rows if row.replica is not None]
    led = [(tags, replica, min_isr) for tags, replica, min_isr in here if replica.is_leader]
    yield from family_in_pieces(
        "kafka_cluster_partition_underminisr",
        "gauge",
        "1 when a partition has fewer in-sync replicas than min.insync.replicas.",
        ((tags, int(len(replica.isr) < min_isr)) for tags, replica, min_isr in led),
    )
    yield from family_in_pieces(
        "kafka_cluster_partition_atminisr",
        "gauge",
        "1 when a partition has just as many in-sync replicas as min.insync.replicas.",
        ((tags, int(len(replica.isr) == min_isr)) for tags, replica, min_isr in led),
    )
    yield from family_in_pieces(
        "kafka_cluster_partition_replicascount",
        "gauge",
        "Replicas of a partition.",
        ((tags, len(replica.replicas)) for tags, replica, _ in led),
    )
    yield from family_in_pieces(
        "kafka_log_log_size",
        "gauge",
        "Bytes of a partition's segments.",
        ((row.labels, 0 if row.log is None else row.log.size_in_bytes) for row in rows if row.replica is not None),
    )


def _exporter(source: Source, rows: Sequence[PartitionRow]) -> Iterator[Family]:
    brokers = source.services.image().cluster.brokers
    yield family("kafka_brokers", "gauge", "Brokers in the cluster.", [("", len(brokers))])
    yield family(
        "kafka_broker_info",
        "gauge",
        "A broker and its address.",
        (
            (labels({"id": node_id, "address": f"{endpoint.host}:{endpoint.port}"}), 1)
            for node_id, broker in sorted(brokers.items())
            for endpoint in broker.listeners[:1]
        ),
    )
    by_name = source.services.image().topics.by_name
    yield from family_in_pieces(
        "kafka_topic_partitions",
        "gauge",
        "Partitions of a topic.",
        ((labels({"topic": name}), len(by_name[name].partitions)) for name in sorted(by_name)),
    )
    of_partitions: tuple[tuple[str, str, Callable[[PartitionRow], int]], ...] = (
        ("current_offset", "High watermark of a partition.", _latest),
        ("oldest_offset", "Log start offset of a partition.", _earliest),
        ("in_sync_replica", "In-sync replicas of a partition.", lambda row: len(row.registration.isr)),
        ("leader", "Node id of a partition's leader, -1 without one.", lambda row: row.registration.leader),
        (
            "leader_is_preferred",
            "1 when a partition is led by its first replica.",
            lambda row: int(row.registration.leader == row.registration.replicas[0]),
        ),
        ("replicas", "Replicas of a partition.", lambda row: len(row.registration.replicas)),
        (
            "under_replicated_partition",
            "1 when a partition lacks an in-sync replica.",
            lambda row: int(len(row.registration.isr) < len(row.registration.replicas)),
        ),
    )
    for name, text, of in of_partitions:
        yield from family_in_pieces(
            f"kafka_topic_partition_{name}", "gauge", text, ((row.labels, of(row)) for row in rows)
        )


def _latest(row: PartitionRow) -> int:
    return 0 if row.log is None else row.log.high_watermark


def _earliest(row: PartitionRow) -> int:
    return 0 if row.log is None else row.log.log_start_offset
