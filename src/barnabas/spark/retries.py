"""Retries and dead letters in Spark: a Python function for each record, whose failures become rows for the sink.

    policy = RetryPolicy(dead_letter="orders.dlq", delays=("10s", "1m"))
    options = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "startingOffsets": "earliest"}
    rows = attempt(read(spark, options, policy), charge, policy, group="billing")
    rows.writeStream.format("barnabas").options(**options_of_the_sink).start()

`read` is the union of the source topics and of the retry topics, each of these with `minRecordAge`, so that its records come when they
are due. `attempt` calls the function in the executors. The rows have the columns `topic`, `partition`, `key`, `value` and `headers`:
what the function returned, and the records that failed, for their retry topic or the dead-letter topic. One query writes them all, so
they are written together or not at all, if the sink is exactly once.

Limits: a micro-batch that is repeated calls the function again. Keys are not held back. Rows have no partition, so their key decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicMetadata
from barnabas.client.topics import NewTopic, create_if_absent, describe_topics
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Output, Record
from barnabas.retries.routing import Router
from barnabas.retries.topics import MissingTopic, topic_settings
from barnabas.spark.denied import Access, denied
from barnabas.spark.named_topics import may_not_create
from barnabas.spark.security_options import settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ROWS", "attempt", "read"]

ROWS = "topic string, partition int, key binary, value binary, headers array<struct<key: string, value: binary>>"
"""The columns of `attempt`."""

Function = Callable[[Record], Iterable[Output] | None]

_NEEDED = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
    ]
)


def read(spark: SparkSession, options: Mapping[str, str], policy: RetryPolicy) -> DataFrame:
    """Return a stream of the source topics and, when they are due, of the records in the policy's retry topics.

    The policy's topics are created if they do not exist.

    Args:
        options: of `format("barnabas")`, with `subscribe`. Committed records are read, with their headers.

    Raises:
        ValueError: an option is missing.
        MissingTopic: a source topic does not exist.
        KafkaError: no broker responds, or this user may not see or create a topic.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in ("kafka.bootstrap.servers", "subscribe"):
        if not given.get(name):
            raise ValueError(f"option {name} is missing")
    sources = [each.strip() for each in given["subscribe"].split(",") if each.strip()]
    security = settings_of(given)
    with Cluster(given["kafka.bootstrap.servers"], security=security.client()) as cluster:
        ensure_topics(cluster, sources, policy)
    ours = {**given, "columns": ",".join(_NEEDED), "includeheaders": "true", "kafka.isolation.level": "read_committed"}
    streams = [spark.readStream.format("barnabas").options(**ours).load()]
    for retry, topic in enumerate(policy.retry_topics, 1):
        # This query sent the records in a retry topic: it must not skip any of them.
        delayed = {
            **ours,
            "subscribe": topic,
            "startingoffsets": "earliest",
            "minrecordage": f"{policy.delay_ms(retry)}ms",
        }
        streams.append(spark.readStream.format("barnabas").options(**delayed).load())
    return reduce(lambda one, other: one.unionByName(other), streams)


def ensure_topics(cluster: Cluster, sources: Sequence[str], policy: RetryPolicy) -> None:
    """Create the policy's topics that do not exist, with as many partitions as the largest source topic.

    That of `barnabas.retries` asks through confluent-kafka, which drivers do without.

    Raises:
        MissingTopic: a source topic does not exist.
        KafkaError: no broker responds, or this user may not see or create a topic.
    """
    found = describe_topics(cluster, [*sources, *policy.retry_topics, policy.dead_letter])
    most = 0
    for name, topic in found.items():
        if isinstance(topic, TopicMetadata):
            most = max(most, len(topic.partitions) if name in sources else 0)
        elif topic.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise denied(topic, Access("Describe" if name == policy.dead_letter else "Read", "topic", name))
        elif name in sources:
            raise MissingTopic(f"topic {name} does not exist: create it first")
    for name in (*policy.retry_topics, policy.dead_letter):
        if isinstance(found[name], KafkaError):
            try:
                create_if_absent(cluster, NewTopic(name, most, configs=topic_settings(policy, name)))
            except KafkaError as error:
                raise may_not_create(error, name) from None


def attempt(
    rows: DataFrame,
    function: Function,
    policy: RetryPolicy,
    group: str,
    *,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> DataFrame:
    """Call a function for every row, and return the rows to write.

    Args:
        rows: as `format("barnabas")` reads them, with headers.
        function: gets a `Record`, and returns the `Output`s to write; any `Exception` is a failed attempt.
        group: names the pipeline in the headers. Rows of another one's retries are left out.

    Raises:
        ValueError: a column is missing.
    """
    if missing := [name for name in _NEEDED if name not in rows.columns]:
        hint = ": set includeHeaders to true" if missing == ["headers"] else ""
        raise ValueError(f"column {missing[0]} is missing{hint}")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return attempted(batches, function, Router(policy, group), now_ms)

    return rows.select(*_NEEDED).mapInArrow(run, ROWS)


def attempted(
    batches: Iterable[pa.RecordBatch], function: Function, router: Router, now_ms: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows to write for the rows that were read; on an executor."""
    for batch in batches:
        outputs: list[Output] = []
        for record in _records(batch):
            arrival = router.arrival(record)
            if not arrival.is_ours:
                continue
            try:
                outputs += function(arrival.record) or ()
            except Exception as error:  # whatever the user's function raises
                outputs.append(router.failed(arrival, error, now_ms()))
        if outputs:
            yield _batch(outputs)


def _records(batch: pa.RecordBatch) -> Iterator[Record]:
    columns: dict[str, Sequence[Any]] = {
        name: batch.column(name).to_pylist() for name in _NEEDED if name != "timestamp"
    }
    stamps = batch.column("timestamp").cast(pa.timestamp("us", batch.column("timestamp").type.tz)).cast(pa.int64())
    columns["timestamp"] = [None if each is None else each // 1000 for each in stamps.to_pylist()]
    for place in range(batch.num_rows):
        headers = tuple((each["key"], each["value"]) for each in columns["headers"][place] or ())
        stamp = columns["timestamp"][place]
        yield Record(
            columns["topic"][place],
            columns["partition"][place],
            columns["offset"][place],
            -1 if stamp is None else stamp,
            columns["key"][place],
            columns["value"][place],
            headers,
        )


def _batch(outputs: list[Output]) -> pa.RecordBatch:
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "key": each.key,
            "value": each.value,
            "headers": [{"key": name, "value": value} for name, value in each.headers],
        }
        for each in outputs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
