"""A made-up cluster of Apache Kafka, healthy and in the window, of which a test changes what it is about."""

from __future__ import annotations

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, Verdict
from barnabas.adopt.window import HIGHEST, LOWEST
from barnabas.client.admin import ConfigEntry, ConfigSource, PartitionDescription, TopicMetadata, TopicPartition
from barnabas.client.features import BrokerFeatures
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.primitives import Uuid

BROKERS = (1, 2, 3)
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def entry(name: str, value: str | None, source: ConfigSource, *, sensitive: bool = False) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, sensitive, "string", [], None)


def partition(*replicas: int) -> PartitionDescription:
    return PartitionDescription(replicas[0], 3, list(replicas), list(replicas), [], [], [])


HEALTHY = ClusterState(
    cluster_id=CLUSTER_ID,
    brokers=BROKERS,
    voters=BROKERS,
    partitions={TopicPartition("orders", 0): partition(1, 2, 3)},
    topics=[TopicMetadata("orders", Uuid(bytes(range(16))), False, [])],
    features={
        each: BrokerFeatures({"metadata.version": (LOWEST, HIGHEST)}, {"metadata.version": HIGHEST}, 100)
        for each in BROKERS
    },
    topic_settings={"orders": [entry(MIN_ISR, "2", ConfigSource.DYNAMIC_TOPIC_CONFIG)]},
)


def of_verdict(findings: list[Finding], verdict: Verdict) -> list[str]:
    return [each.what for each in findings if each.verdict == verdict]
