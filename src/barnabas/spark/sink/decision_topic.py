"""The topic of the sink's decisions, `__barnabas_sink`: the first driver of a cluster creates it.

A user who may not create topics, or none whose name begins with `__`, gets the administrator's command in the error.

It gets three replicas, of which two must be in sync, so that a broker that loses its disk loses no decision. Brokers that
are registered count, also while they are down (fenced): a topic that is created while one of three is away must not have
two replicas for ever. The controller places a replica on the broker that is away, and it catches up when it is back.

Limits: a broker older than DescribeCluster 2 returns only the brokers that serve. A topic that exists keeps its
replicas; `warn_of_few_replicas` says how to add some.

Source: KIP-1073 (fenced brokers in DescribeCluster); Kafka's StripedReplicaPlacer, which uses fenced brokers too.
"""

from __future__ import annotations

import logging

from barnabas.client.brokers import describe_cluster
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.patience import insist
from barnabas.client.topics import MIN_ISR, REPLICAS, NewTopic, create_if_absent, replicated
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.denied import is_denied

logger = logging.getLogger("barnabas.spark")

TOPIC = "__barnabas_sink"
PARTITION = TopicPartition(TOPIC, 0)
LOOK_BACK = (100, 5_000)
"""A sink's last record is nearly always among so many last ones of the topic."""
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": "10485760",
}
"""A decision names a transaction for each task, in about 80 bytes: 100,000 tasks take 8 MB, and must fit into a segment."""

HOW_TO_ADD_REPLICAS = (
    f"add replicas with `kafka-reassign-partitions --execute`, then `barnabas topic alter {TOPIC} -c {MIN_ISR}=2`"
)


def create_decision_topic(cluster: Cluster, timeout_ms: int) -> None:
    """Create the topic if it does not exist; return when metadata shows it.

    Raises:
        KafkaError: it cannot be created, or the controller finds too few brokers for its replicas until the timeout.
    """
    too_few: list[str] = []

    def create() -> None:
        too_few.clear()
        known = cluster.metadata([TOPIC])
        if TOPIC in known.topics:
            return
        wanted = replicated(TOPIC, 1, _registered(cluster), TOPIC_SETTINGS)
        try:
            create_if_absent(cluster, wanted)
        except KafkaError as error:
            if is_denied(error):
                raise error_for(error.code, _for_an_administrator(wanted)) from None
            if error.code is ErrorCode.INVALID_REPLICATION_FACTOR:
                too_few.append(error.message)
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, error.message) from None
            raise
        if wanted.replication_factor < REPLICAS:
            logger.warning(
                "created %s with %d of %d replicas, because the brokers list no more brokers: a broker that loses its disk"
                " can lose decisions. When there are %d brokers, %s",
                TOPIC,
                wanted.replication_factor,
                REPLICAS,
                REPLICAS,
                HOW_TO_ADD_REPLICAS,
            )

    try:
        insist(cluster, create, timeout_ms)
    except KafkaError as error:
        if not too_few:
            raise
        raise error_for(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{TOPIC} cannot be created: the controller has found too few brokers for {timeout_ms} ms: {too_few[-1]}"
            " Start those that are down, or remove them with `barnabas cluster forget NODE`, and run the query again",
        ) from error


def _for_an_administrator(wanted: NewTopic) -> str:
    configs = " ".join(f"--config {name}={value}" for name, value in wanted.configs.items())
    return (
        f"the sink keeps its decisions in topic {TOPIC}, which does not exist or which this user may not see, and this user may"
        f" not create it: an administrator does with `kafka-topics --create --topic {TOPIC} --partitions 1 --replication-factor"
        f" {wanted.replication_factor} {configs}`, and `kafka-acls --add --allow-principal User:NAME --operation Read"
        f" --operation Write --topic {TOPIC}`"
    )


def warn_of_few_replicas(cluster: Cluster) -> None:
    """Log a warning if the topic has fewer replicas than the cluster could keep."""
    try:
        topic = cluster.metadata([TOPIC]).topics.get(TOPIC)
        if topic is None or (found := len(topic.partitions[0].replicas)) >= REPLICAS:
            return
        wanted = min(_registered(cluster), REPLICAS)
    except KafkaError:
        return
    if found < wanted:
        logger.warning(
            "%s has %d of %d replicas: a broker that loses its disk can lose decisions, and rows with them; %s",
            TOPIC,
            found,
            wanted,
            HOW_TO_ADD_REPLICAS,
        )


def _registered(cluster: Cluster) -> int:
    found = describe_cluster(cluster)
    return len(found.brokers) + len(found.fenced)
