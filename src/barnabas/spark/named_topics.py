"""Topics that a query names and that may not exist: the sentence for the user, and what the sink does about it.

Spark's own Kafka sink writes through a Java producer, for which brokers create a missing topic if their
`auto.create.topics.enable` is true. The sink here does the same, with the brokers' defaults, and logs it. The driver
asks for the option `topic` before the first task; a topic that only a row names is asked for in the row's task.
"""

from __future__ import annotations

import logging

from barnabas.client.cluster import Cluster
from barnabas.client.patience import insist
from barnabas.client.topics import NewTopic, brokers_create_topics, create_if_absent
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.denied import Access, denied, is_denied
from barnabas.spark.plain_errors import QueryError
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

logger = logging.getLogger("barnabas.spark")


def nearest_topic(cluster: Cluster, topic: str) -> str:
    """Return the end of a sentence about a topic that does not exist: the topic that its name probably meant, if any."""
    try:
        return did_you_mean(topic, cluster.metadata().topics)
    except KafkaError:  # the sentence is right without it
        return ""


def partition_count(cluster: Cluster, topic: str, timeout_ms: int) -> int:
    """Return how many partitions a topic has that rows are written to; create it if the brokers create topics.

    Args:
        timeout_ms: each request is repeated so long; brokers may move or restart meanwhile.

    Raises:
        QueryError: it does not exist, and brokers do not create topics; or it cannot exist.
        KafkaError: no broker answered in time, or the topic may not be seen or created.
    """

    def ask() -> int:
        metadata = cluster.metadata([topic])
        if topic not in metadata.topics:
            raise metadata.errors.get(topic) or error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return len(metadata.topics[topic].partitions)

    try:
        return insist(cluster, ask, timeout_ms)
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise QueryError(f"'{printable(topic)}' is not a valid topic name") from None
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise denied(error, Access("Write", "topic", topic)) from None
    meant = nearest_topic(cluster, topic)
    if not brokers_create_topics(cluster):
        servers = ",".join(f"{host}:{port}" for host, port in cluster.bootstrap)
        raise QueryError(
            f"topic {topic} does not exist, and brokers do not create it (auto.create.topics.enable=false):"
            f" `barnabas topic create {topic} -b {servers}` does{meant}"
        )
    try:
        insist(cluster, lambda: create_if_absent(cluster, NewTopic(topic)), timeout_ms)
    except KafkaError as error:
        raise may_not_create(error, topic) from None
    count = insist(cluster, ask, timeout_ms)
    logger.warning("topic %s did not exist, and was created with the brokers' defaults%s", topic, meant)
    return count


def may_not_create(error: KafkaError, topic: str) -> KafkaError:
    """Return the error of a topic's creation in words, if this user may not create it; any other error as it is."""
    if not is_denied(error):
        return error
    return error_for(
        error.code,
        f"topic {topic} does not exist, and this user may not create it: an administrator does with"
        f" `kafka-topics --create --topic {topic}`, or allows it with `kafka-acls --add --allow-principal User:NAME"
        f" --operation Create --topic {topic}`",
    )
