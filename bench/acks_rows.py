"""What acks costs on three nodes, and what it saves: rate, latency, and the acknowledged records that a kill of the leader loses.

The loss is counted in one partition: a producer writes numbered records as fast as it can, the node that leads the partition is killed
meanwhile, and the partition is read when another one leads. With acks=0 the library reports a record as delivered when it is sent.
Rates come before the first kill: a node that was started again runs cold code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.clusters import NO_SETTINGS, ClusterCost, RunningCluster
from bench.report import OURS, THEIR_CLUSTER
from bench.scenarios import Figures, librdkafka, librdkafka_figures

SYNCED = {
    "flush.messages=1": ({"flush.messages": "1"}, (OURS, THEIR_CLUSTER)),
    "flush before ack": ({"barnabas.flush.before.ack": "true"}, (OURS,)),
}
"""The settings with which a record is on the disks when it is acknowledged, and the sides that have them."""
ACKS = ("0", "1", "all")
RATE = 200
KILL_AFTER = 1_000_000
RECORDS = 1_300_000
VALUE = b"x" * 92


def acks_rates(
    running: RunningCluster, acks: str, megabytes: int, seconds: float, settings: Mapping[str, str] = NO_SETTINGS
) -> Figures:
    """Return the rate of a producer that writes as fast as it can, and the latency of 200 records a second.

    Args:
        settings: of the topic, such as when its log is synced.
    """
    servers = running.cluster.bootstrap_servers
    count = megabytes * 1000
    with running.topic(settings=settings) as topic:
        with ClusterCost(running.cluster) as cost:
            took = librdkafka("produce", servers, topic, count, 1000, 131_072, acks)
        found = librdkafka_figures("pace", servers, topic, int(RATE * seconds), 1000, RATE, acks)
    return {
        "MB/s": megabytes / took,
        "three nodes' CPU s/GB": cost.cpu / megabytes * 1000,
        "p50 µs": found["p50"] * 1e6,
        "p99 µs": found["p99"] * 1e6,
    }


def acks_losses(running: RunningCluster, acks: str) -> Figures:
    """Kill the leader under a producer, and count; the cluster is whole again afterwards."""
    servers = running.cluster.bootstrap_servers
    with running.topic(partitions=1) as topic:
        leader = running.cluster.leader_of(topic, 0)
        delivered = _produced(servers, topic, acks, leader.kill)
        kept = _kept(servers, topic)
        running.cluster.start_again(leader)
        running.cluster.repair()
    return {
        "acknowledged": len(delivered),
        "of these lost": sum(number not in kept for number in delivered),
        "twice": sum(times > 1 for times in kept.values()),
    }


def _produced(servers: str, topic: str, acks: str, kill: Callable[[], object]) -> set[int]:
    """Produce numbered records, kill meanwhile; return the numbers that were reported as delivered."""
    delivered: set[int] = set()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "acks": acks,
            "linger.ms": 5,
            "queue.buffering.max.messages": 20_000,
            "log_level": 0,
        }
    )

    def note(error: object, message: object) -> None:
        if error is None:
            delivered.add(int.from_bytes(message.key(), "big"))  # type: ignore[attr-defined]

    for number in range(RECORDS):
        if number == KILL_AFTER:
            kill()
        while True:
            try:
                producer.produce(topic, VALUE, number.to_bytes(8, "big"), 0, note)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    producer.flush(280)
    return delivered


def _kept(servers: str, topic: str) -> Counter[int]:
    """Return how often each number is in the partition."""
    kept: Counter[int] = Counter()
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "acks",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while True:
            for message in consumer.consume(10_000, 1):
                if (error := message.error()) is None:
                    kept[int.from_bytes(message.key() or b"", "big")] += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    return kept
    finally:
        consumer.close()
