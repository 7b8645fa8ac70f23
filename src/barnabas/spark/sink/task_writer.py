"""Writes the rows of one task.

Exactly once: the rows are in a transaction that is open when the task is done, and the driver ends it
(`protocol`). At least once: the rows are there when the task is done.
"""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.compression import Compression
from barnabas.spark.denied import Access, denied, is_denied
from barnabas.spark.named_topics import partition_count
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.columns import RowRouter
from barnabas.spark.sink.digest import RowDigest
from barnabas.spark.sink.encoder import encode
from barnabas.spark.sink.options import SinkOptions
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch, taken_over
from barnabas.spark.sink.sink_transactions import FENCED
from barnabas.spark.sink.task_producers import TaskProducers
from barnabas.words.sink_names import SEPARATOR

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.producer import Producer

# The task's transaction has ended, and the task did not end it.
_TAKEN_OVER = (*FENCED, ErrorCode.TRANSACTION_ABORTABLE)


def write_task(
    producers: TaskProducers,
    options: SinkOptions,
    batch: SinkBatch | None,
    task: int,
    rows: Iterable[pa.RecordBatch],
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    *,
    only_counts: bool = False,
) -> Prepared:
    """Write rows and return the transaction that holds them.

    Args:
        batch: None for delivery at least once.
        task: the number of the task, for spreading rows without keys.
        only_counts: write nothing: the batch is written, and the driver compares its rows.

    Raises:
        ValueError: a row cannot be written; the message is for the user.
        QueryError: the broker rejects a setting or a record; the message is for the user.
        KafkaError: a broker did not answer in time.
    """
    cluster = producers.cluster(options)
    producer: Producer | None = None
    digest = None if batch is None else RowDigest()
    compression = Compression.NONE if only_counts else options.compression
    counts: dict[str, int] = {}
    written = 0

    def count_of(topic: str) -> int:
        if topic not in counts:
            if producer is not None:
                producer.settle()
            counts[topic] = partition_count(cluster, topic, options.delivery_timeout_ms)
        return counts[topic]

    router = RowRouter(options.topic, count_of, task, now_ms)
    try:
        for batch_of_rows in rows:
            for partition, records in router.route(batch_of_rows):
                batches = encode(records, options.max_request_bytes, compression, digest)
                if only_counts:
                    collections.deque(batches, maxlen=0)
                    continue
                if producer is None:
                    producer = producers.begin(options, batch)
                for encoded in batches:
                    producer.send(partition, encoded)
            written += batch_of_rows.num_rows
        if producer is None:
            return Prepared(None, written, digest=0 if digest is None else digest.value)
        producer.flush()
    except Exception as error:
        if producer is not None and batch is not None:
            # Readers of committed records wait for every open transaction.
            with contextlib.suppress(KafkaError):
                producer.abort()
        raise _explained(error, options, batch, producer, counts) from None
    if batch is None or digest is None:
        return Prepared(None, written)
    producers.keep(options, batch, producer)
    assert producer.identity is not None
    return Prepared(producer.transaction, written, producer.identity.two_phase, digest.value)


def _explained(
    error: Exception,
    options: SinkOptions,
    batch: SinkBatch | None,
    producer: Producer | None,
    topics: Iterable[str],
) -> Exception:
    """Return the error in words that say what to do next."""
    if not isinstance(error, KafkaError):
        return error
    if batch is not None and error.code in _TAKEN_OVER:
        two_phase = producer is not None and producer.identity is not None and producer.identity.two_phase
        return QueryError(taken_over(batch, two_phase))
    if error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return denied(error, Access("Write", "transactional-id", options.prefix + SEPARATOR, is_prefix=True))
    # Also where the broker speaks of the cluster: writing without transactions needs Write on any topic (KIP-679).
    if is_denied(error):
        return denied(error, *(Access("Write", "topic", each) for each in topics))
    match error.code:
        case ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            return QueryError(
                f"kafka.transaction.timeout.ms {options.transaction_timeout_ms} is above the brokers'"
                " transaction.max.timeout.ms: lower it, or raise the brokers' limit"
            )
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return QueryError(
                "a record, or a batch of them, is larger than the topic's max.message.bytes: raise it, or lower"
                f" kafka.max.request.size ({options.max_request_bytes})"
            )
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return QueryError(
                "a topic was deleted while rows were written to it: create it again, and restart the query"
            )
    return error
