"""The public rules for a number of brokers, side by side: the plan takes the largest of those that are needed."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.planning.partition_rules import REPLICAS_OF_A_BROKER
from barnabas.planning.quantities import per_second, size
from barnabas.planning.rule import Kind, Rule
from barnabas.planning.sums import at_least, retained
from barnabas.planning.workload import Workload

_RECORDS_OF_A_BROKER = 1_000_000
_RECORDS_OF_THREE = 2_000_000
_SMALL_DISK = 1e12


class Load(NamedTuple):
    """The bytes that the whole cluster takes in, gives out and keeps.

    Attributes:
        written: bytes a second, of all replicas.
        read: bytes a second, to followers and consumers.
        replica: bytes that one replica of the topic keeps.
        kept: bytes of all replicas.
        partition_replicas: how many there are.
    """

    written: float
    read: float
    replica: float
    kept: float
    partition_replicas: int


def load_of(workload: Workload, partitions: int) -> Load:
    """Return what a topic of some partitions asks of the cluster."""
    w = workload
    replica = retained(w.stream, w.retention_s) + partitions * w.segment
    read = w.stream * (w.replicas - 1 + w.groups)
    return Load(w.stream * w.replicas, read, replica, replica * w.replicas, partitions * w.replicas)


def broker_rules(workload: Workload, load: Load) -> list[Rule]:
    """Return every rule; those that are needed first."""
    w = workload
    needs = [
        ("replicas", w.replicas, f"{w.replicas} replicas", "Kafka's documentation: replicas of a partition are on separate brokers"),
        ("write", at_least(load.written, w.broker_rate), f"{per_second(load.written)} ÷ {per_second(w.broker_rate)} a broker",
         "hundreds of MB/s a broker; the network is the limit"),
        ("read", at_least(load.read, w.broker_rate), f"{per_second(load.read)} ÷ {per_second(w.broker_rate)} a broker",
         "hundreds of MB/s a broker; the network is the limit"),
        ("disk", at_least(load.kept, w.broker_disk), f"{size(load.kept)} ÷ {size(w.broker_disk)} a broker",
         "the disk that you buy"),
        ("partitions", at_least(load.partition_replicas, REPLICAS_OF_A_BROKER),
         f"{load.partition_replicas:,} replicas ÷ {REPLICAS_OF_A_BROKER:,} a broker",
         "J. Rao, Apache Kafka Supports 200K Partitions Per Cluster (2018)"),
    ]  # fmt: skip
    ranges = [
        ("1,000,000 small records/s", at_least(w.records, _RECORDS_OF_A_BROKER), f"{w.records:,.0f}/s ÷ 1,000,000/s a broker",
         "rule of thumb for a broker on an SSD; counts records, not bytes"),
        ("2,000,000 writes/s on three", 3 * at_least(w.records, _RECORDS_OF_THREE), f"3 × ({w.records:,.0f}/s ÷ 2,000,000/s)",
         "J. Kreps, Benchmarking Apache Kafka (2014): records of 100 B"),
        ("1 TB a broker", at_least(load.kept, _SMALL_DISK), f"{size(load.kept)} ÷ 1 TB",
         "rule of thumb from when an SSD had 1 TB"),
    ]  # fmt: skip
    return [
        Rule(name, kind, formula, count, count, source)
        for kind, rules in ((Kind.NEED, needs), (Kind.RANGE, ranges))
        for name, count, formula, source in rules
    ]
