"""The records of topics for a sweep and an audit: all in the log, those of open and aborted transactions too."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.claims.sweep import TopicRecord
from barnabas.client.admin import EARLIEST, LATEST, Admin, TopicPartition, result
from barnabas.client.configs import ConfigResource, ResourceType
from barnabas.client.partition_records import records_between
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError


def topic_records(admin: Admin, topics: list[str]) -> Iterator[TopicRecord]:
    """Yield the records of topics, up to where the logs end now.

    Raises:
        KafkaError: a topic does not exist, or a leader does not answer.
    """
    described = admin.describe_topics(topics)
    partitions = [
        TopicPartition(name, each.partition) for name in topics for each in result(described[name]).partitions
    ]
    ends = {each: result(found).offset for each, found in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
    for where, end in ends.items():
        yield from _records(admin, where, end)


def _records(admin: Admin, where: TopicPartition, end: int) -> Iterator[TopicRecord]:
    position = 0
    while True:
        begin = max(position, result(admin.list_offsets({where: EARLIEST})[where]).offset)
        try:
            for record in records_between(admin.cluster, where, begin, end):
                yield where.topic, where.partition, record.offset, record.headers, record.value
                position = record.offset + 1
            return
        except KafkaError as error:
            # Retention deleted the beginning meanwhile.
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise


def with_uncertain_ends(admin: Admin, topics: list[str]) -> list[TopicPartition]:
    """Return the partitions that may have records above what readers see, for any length of time.

    Fewer replicas are in sync than `min.insync.replicas`, so the high watermark stands still.

    Raises:
        KafkaError: a topic does not exist, or its settings cannot be read.
    """
    found = {name: result(each) for name, each in admin.describe_topics(topics).items()}
    settings = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in topics], names=[MIN_ISR])
    wanted = {
        resource.name: int(entry.value or 1)
        for resource, entries in settings.items()
        for entry in result(entries)
        if entry.name == MIN_ISR
    }
    return [
        TopicPartition(topic.name, each.partition)
        for topic in found.values()
        for each in topic.partitions
        if len(each.isr) < min(wanted.get(topic.name, 1), len(each.replicas))
    ]
