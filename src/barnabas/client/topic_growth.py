"""Ordered growth of topics, as a client reads and writes it: the setting on every broker, and the fences.

`protocol.ordered_growth` has the setting's meaning.

Sources: DescribeConfigs (32), IncrementalAlterConfigs (44), ListOffsets (2), Fetch (1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.configs import ConfigChange, ConfigResource, ResourceType, alter_configs, describe_configs
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import result, results
from barnabas.client.partition_records import fetch_records
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.ordered_growth import SETTING, Generation, read_generations, write_generations
from barnabas.records.record_batch import iter_batches

_FIRST_LOOK, _LONGER = 64, 64
_NOT_DESCRIBED = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


def list_growth(cluster: Cluster, topics: Iterable[str]) -> dict[str, tuple[Generation, ...]]:
    """Return the generations of each of these topics that has grown in order.

    Topics that do not exist, or that this client may not describe, are left out.

    Raises:
        KafkaError: no broker answers.
        ValueError: a newer release wrote one.
    """
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    described = describe_configs(cluster, resources, names=[SETTING]) if resources else {}
    found = {}
    for resource, entries in described.items():
        if isinstance(entries, KafkaError):
            if entries.code not in _NOT_DESCRIBED:
                raise entries
            continue
        for entry in entries:
            if entry.name == SETTING and entry.value:
                found[resource.name] = read_generations(entry.value)
    return found


def store_growth(
    cluster: Cluster, topic: str, generations: Sequence[Generation], *, validate_only: bool = False
) -> bool:
    """Write a topic's generations, and wait until every broker has them; or only ask whether they may be written.

    Returns:
        Whether every broker shows them within five seconds.

    Raises:
        KafkaError: INVALID_CONFIG: the brokers are Apache Kafka's; or a broker does not answer.
    """
    text = write_generations(generations)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    changes = {resource: [ConfigChange(SETTING, text)]}
    if error := alter_configs(cluster, changes, validate_only=validate_only)[resource]:
        raise error
    return validate_only or cluster.await_change(lambda: all(each == text for each in _shown(cluster, topic)))


def _shown(cluster: Cluster, topic: str) -> list[str | None]:
    """Return the setting as each broker has it."""
    request_class = messages.DescribeConfigsRequest

    def ask(connection: BlockingConnection, node: int) -> str | KafkaError:
        described = request_class.DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=[SETTING]
        )
        (answer,) = connection.request(request_class(resources=[described])).results
        return next((each.value or "" for each in answer.configs if each.name == SETTING), "")

    return [result(each) for each in cluster.ask_nodes(ask).values()]


def log_starts(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    """Return the log start offset of each of a topic's first partitions.

    Raises:
        KafkaError: a partition has no leader.
    """
    return _offsets(cluster, topic, partitions, EARLIEST)


def fences_of(cluster: Cluster, topic: str, partitions: int) -> tuple[int, ...]:
    """Return the offset after the last record of each of a topic's first partitions, 0 for one without records.

    Markers of transactions after the last record do not count: not every client commits an offset behind them.

    Raises:
        KafkaError: a partition has no leader, or does not return its records.
    """
    starts = _offsets(cluster, topic, partitions, EARLIEST)
    ends = _offsets(cluster, topic, partitions, LATEST)
    bounds = enumerate(zip(starts, ends, strict=True))
    return tuple(_after_last_record(cluster, TopicPartition(topic, index), *each) for index, each in bounds)


def _offsets(cluster: Cluster, topic: str, partitions: int, position: int) -> list[int]:
    wanted = {TopicPartition(topic, index): position for index in range(partitions)}
    return [each.offset for each in results(list_offsets(cluster, wanted)).values()]


def _after_last_record(cluster: Cluster, where: TopicPartition, start: int, end: int) -> int:
    """Look back from the end, ever further, until there is a batch of records."""
    distance = _FIRST_LOOK
    while True:
        begin = max(start, end - distance)
        offset, found = begin, 0
        while offset < end:
            for _, header in iter_batches(cluster.retry(partial(fetch_records, cluster, where, offset))):
                offset = max(offset, header.next_offset)
                if not header.is_control and header.base_offset < end:
                    found = min(header.next_offset, end)
        if found or begin == start:
            return found
        distance *= _LONGER
