"""Fetches and appends record batches of one partition, one request at a time.

Each function but `records_between` makes one attempt; the caller decides how long to repeat it (`Cluster.retry`, `insist`).

Sources: Fetch (1), Produce (0); KIP-74 (a fetch returns at least one batch, whatever its limit).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.records.record import Record, check_records
from barnabas.records.record_batch import iter_batches

# From version 13 on Fetch and Produce name topics by id.
_HIGHEST_WITH_NAMES = 12
_ALL_REPLICAS = -1
_FETCH_BYTES = 4 << 20
_FETCH_WAIT_MS = 500


def fetch_records(cluster: Cluster, partition: TopicPartition, offset: int) -> memoryview:
    """Return batches from an offset on, at least one; the first may begin before the offset.

    Raises:
        KafkaError: REQUEST_TIMED_OUT if the leader returns no batch, or its error.
    """
    connection = _leader(cluster, partition)
    records = result(fetch_once(connection, partition, offset, max_bytes=_FETCH_BYTES, max_wait_ms=_FETCH_WAIT_MS))
    if not records:
        # A new leader may not know yet that these records are committed.
        raise error_for(ErrorCode.REQUEST_TIMED_OUT, f"no records of {partition} from offset {offset} on")
    return records


def records_between(cluster: Cluster, partition: TopicPartition, begin: int, end: int) -> Iterator[Record]:
    """Yield the records from an offset on, before another; those of open and aborted transactions, too.

    Raises:
        KafkaError: the leader does not return them until the cluster's deadline.
        RecordError: a batch is damaged.
    """
    offset = begin
    while offset < end:
        fetched = cluster.retry(partial(fetch_records, cluster, partition, offset))
        for position, header in iter_batches(fetched):
            offset = max(offset, header.next_offset)
            for record in () if header.is_control else check_records(fetched, position):
                if begin <= record.offset < end:
                    yield record


def fetch_once(
    connection: BlockingConnection, partition: TopicPartition, offset: int, *, max_bytes: int, max_wait_ms: int
) -> memoryview | KafkaError:
    """Return what one fetch from one broker finds: batches from an offset on, or no bytes."""
    request_class = messages.FetchRequest
    asked = request_class.FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = request_class(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[request_class.FetchTopic(topic=partition.topic, partitions=[asked])],
    )
    response = connection.request(request, highest=_HIGHEST_WITH_NAMES)
    if error := outcome_of(response.error_code):
        return error
    ((answer,),) = [topic.partitions for topic in response.responses]
    return outcome_of(answer.error_code) or memoryview(answer.records or b"")


def produce_request(
    batches: Iterable[tuple[tuple[str, int], bytes | bytearray]],
    *,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> messages.ProduceRequest:
    """Return a request to append batches, at most one to a partition, on all replicas in sync."""
    request_class = messages.ProduceRequest
    by_topic: dict[str, list[messages.ProduceRequest.PartitionProduceData]] = {}
    for (topic, index), batch in batches:
        data = request_class.PartitionProduceData(index=index, records=memoryview(batch))
        by_topic.setdefault(topic, []).append(data)
    return request_class(
        transactional_id=transactional_id,
        acks=_ALL_REPLICAS,
        timeout_ms=timeout_ms,
        topic_data=[request_class.TopicProduceData(name=name, partition_data=data) for name, data in by_topic.items()],
    )


def append_batch(cluster: Cluster, partition: TopicPartition, batch: bytes | bytearray) -> int:
    """Append a batch, and return its offset when all replicas in sync have it.

    Raises:
        KafkaError: the leader does not append it. After ConnectionLost or RequestTimedOut it may have.
    """
    request = produce_request([(partition, batch)], timeout_ms=cluster.timeout_ms)
    response = _leader(cluster, partition).request(request, highest=_HIGHEST_WITH_NAMES)
    (answer,) = response.responses[0].partition_responses
    if error := outcome_of(answer.error_code, answer.error_message):
        raise error
    return int(answer.base_offset)


def _leader(cluster: Cluster, partition: TopicPartition) -> BlockingConnection:
    return cluster.connection(result(cluster.leaders([partition])[partition]))
