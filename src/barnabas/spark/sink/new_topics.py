"""The topics that a query brings along: the option `createTopics`.

`NAME:PARTITIONS` or `NAME:PARTITIONS:REPLICAS`, several with commas, as `KAFKA_CREATE_TOPICS` of a known container image
writes them. The driver creates those that do not exist before the first task. A topic that exists stays as it is.
"""

from __future__ import annotations

import logging

from barnabas.client.cluster import Cluster
from barnabas.client.patience import insist
from barnabas.client.topics import NewTopic, create_if_absent
from barnabas.protocol import topic_names
from barnabas.protocol.errors import KafkaError
from barnabas.spark.named_topics import may_not_create, partition_count
from barnabas.words.printable import printable

logger = logging.getLogger("barnabas.spark")


def parse_new_topics(text: str) -> tuple[NewTopic, ...]:
    """Return the topics of the option `createTopics`.

    Raises:
        ValueError: the text is not such a list; the message is for the user.
    """
    topics = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    names = [topic.name for topic in topics]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"createTopics names topic {name} more than once")
    return topics


def _parse(part: str) -> NewTopic:
    name, *numbers = part.split(":")
    if len(numbers) not in (1, 2) or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise ValueError(
            f"createTopics has '{printable(part)}': write NAME:PARTITIONS or NAME:PARTITIONS:REPLICAS, several with commas"
        )
    if (fault := topic_names.fault(name)) is not None:
        raise ValueError(f"createTopics has '{printable(name)}', which no topic can be called: {fault}")
    partitions, replicas = int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else -1
    return NewTopic(name, partitions, replicas)


def create_missing(cluster: Cluster, topics: tuple[NewTopic, ...], timeout_ms: int) -> None:
    """Create the topics that do not exist; warn of one that exists with another number of partitions.

    Raises:
        KafkaError: no broker answered in time, or a topic may not be created.
    """
    for topic in topics:
        try:
            insist(cluster, lambda topic=topic: create_if_absent(cluster, topic), timeout_ms)  # type: ignore[misc]
        except KafkaError as error:
            raise may_not_create(error, topic.name) from None
        found = partition_count(cluster, topic.name, timeout_ms)
        if found != topic.partitions:
            logger.warning(
                "topic %s has %d partitions, and createTopics says %d: it stays as it is",
                topic.name,
                found,
                topic.partitions,
            )
