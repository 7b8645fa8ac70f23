"""Large values by reference in Spark: values become claims before a frame is written, payloads after it was read.

    rows = to_claims(frame, "s3://payloads/kafka", topic="videos", bootstrap="localhost:9092")
    rows.write.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092").option("topic", "videos").save()

    rows = spark.read.format("barnabas").option("subscribe", "videos").option("includeHeaders", True).load()
    videos = from_claims(rows, "s3://payloads/kafka")

The claims are those of `barnabas.claims`, so that Python and Spark read each other's. A payload's name follows from its
content: a task that Spark repeats writes the same rows, as the exactly-once sink demands. A batch must take less time
than the grace of the sweeps, and its rows must not be cached between `to_claims` and the sink for longer.

`from_claims` yields its rows in pieces of some megabytes, so that a task holds a few payloads, however many claims
Spark hands over together. The rows before `to_claims` come as Spark packs them: set
`spark.sql.execution.arrow.maxRecordsPerBatch` so low that so many large values fit into a task's memory.

Both need pandas, because PySpark's `mapInArrow` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.claims.claim import NotAClaim, marked, parse_claim, prefix_of, without_mark
from barnabas.claims.payload_store import PayloadStore
from barnabas.claims.payloads import THRESHOLD_BYTES, Place, load_payload, not_valid, store_payload
from barnabas.claims.store import open_store
from barnabas.client.admin import Admin
from barnabas.spark.security_options import SecurityOptions, settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["claimed", "from_claims", "loaded", "to_claims"]

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_PIECE_BYTES = 16 << 20
"""From so many bytes of payloads on a piece of rows goes to Spark."""

Prefix = Callable[[str], str]
"""Where a topic's payloads are."""


def to_claims(
    rows: DataFrame,
    store: str,
    *,
    topic: str | None = None,
    bootstrap: str | None = None,
    cluster: str | None = None,
    threshold: int = THRESHOLD_BYTES,
    options: Mapping[str, str] | None = None,
    security: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows to write: a large value is in the store, and its claim is in the column `value`.

    Args:
        rows: with the column `value`, string or binary; `headers` is added if it is missing.
        store: the URI of the store, which driver and executors reach.
        topic: where the rows go; None if they have the column `topic`.
        bootstrap: addresses of the cluster, which is asked for its id; not needed with `cluster`.
        cluster: the name of the cluster in payloads' paths, as `ClaimProducer` has it.
        threshold: a value of so many bytes or more goes to the store.
        options: what obstore needs to reach an object store.
        security: the options of TLS and login for `bootstrap`, as `format("barnabas")` takes them; others are ignored.

    Raises:
        ValueError: a column or an argument is missing, or TLS and login cannot be set up.
        StoreError: the store cannot be opened.
        KafkaError: no broker answers.
    """
    if "value" not in rows.columns:
        raise ValueError("column value is missing")
    if topic is None and "topic" not in rows.columns:
        raise ValueError("the rows have no column topic: name the topic")
    name = cluster or _cluster_id(bootstrap, settings_of(security))
    prefix_of(name, topic or "any-topic")
    given = dict(options or {})
    open_store(store, given)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return claimed(batches, _opened(store, given), lambda each: prefix_of(name, each), topic, threshold)

    return rows.mapInArrow(run, _with_bytes(rows.schema))


def from_claims(rows: DataFrame, store: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Return the rows with payloads in the place of claims; a payload that is gone or damaged fails the query.

    Args:
        rows: as `format("barnabas")` or Spark's Kafka source reads them, with `value` and `headers`. The error names
            the record if they have `topic`, `partition` and `offset`.
        store: the URI of the store, which driver and executors reach.
        options: what obstore needs to reach an object store.

    Raises:
        ValueError: a column is missing.
        StoreError: the store cannot be opened.
    """
    if missing := [name for name in ("value", "headers") if name not in rows.columns]:
        hint = ": set includeHeaders to true" if missing == ["headers"] else ""
        raise ValueError(f"column {missing[0]} is missing{hint}")
    given = dict(options or {})
    open_store(store, given)
    return rows.mapInArrow(lambda batches: loaded(batches, _opened(store, given)), _with_bytes(rows.schema))


def claimed(
    batches: Iterable[pa.RecordBatch], store: PayloadStore, prefix: Prefix, topic: str | None, threshold: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with claims in the place of large values; on an executor.

    Raises:
        StoreError: the store does not take a value.
        ValueError: a row has no topic, or the header that marks claims.
    """
    for batch in batches:
        values = batch.column("value").cast(pa.binary())
        headers = batch.column("headers") if "headers" in batch.schema.names else pa.nulls(len(values), _HEADERS)
        large = [place for place, size in enumerate(pc.binary_length(values).to_pylist()) if (size or 0) >= threshold]
        if large:
            new_values, new_headers = values.to_pylist(), _pairs(headers)
            for place in large:
                where = topic if topic is not None else batch.column("topic")[place].as_py()
                if where is None:
                    raise ValueError("a row has no topic, and none was named for all of them")
                new_values[place] = store_payload(store, prefix(where), new_values[place]).encoded()
                new_headers[place] = marked(new_headers[place])
            values, headers = pa.array(new_values, pa.binary()), _header_column(new_headers)
        yield _replaced(batch, values, headers)


def loaded(batches: Iterable[pa.RecordBatch], store: PayloadStore) -> Iterator[pa.RecordBatch]:
    """Yield the rows with payloads in the place of claims, in pieces; on an executor.

    Raises:
        PayloadError: a payload is gone or damaged, or a claim is not valid.
        StoreError: the store does not answer.
    """
    for batch in batches:
        values, headers = batch.column("value").cast(pa.binary()).to_pylist(), _pairs(batch.column("headers"))
        places = _places(batch)
        begin = size = 0
        for row, (value, pairs) in enumerate(zip(values, headers, strict=True)):
            try:
                claim = parse_claim(pairs, value)
            except NotAClaim as error:
                raise not_valid(error, places(row)) from None
            if claim is None:
                continue
            values[row] = load_payload(store, claim, places(row))
            headers[row] = without_mark(pairs) or None
            size += claim.size
            if size >= _PIECE_BYTES:
                yield _piece(batch, values, headers, begin, row + 1)
                values[begin : row + 1] = [None] * (row + 1 - begin)  # the memory of the payloads
                begin, size = row + 1, 0
        if begin < batch.num_rows:
            yield _piece(batch, values, headers, begin, batch.num_rows)


def _piece(batch: pa.RecordBatch, values: list[Any], headers: list[Any], begin: int, end: int) -> pa.RecordBatch:
    rows = batch.slice(begin, end - begin)
    return _replaced(rows, pa.array(values[begin:end], pa.binary()), _header_column(headers[begin:end]))


def _places(batch: pa.RecordBatch) -> Callable[[int], Place]:
    if not {"topic", "partition", "offset"} <= set(batch.schema.names):
        return lambda row: (None, None, None)
    topic, partition, offset = (batch.column(name) for name in ("topic", "partition", "offset"))
    return lambda row: (topic[row].as_py(), partition[row].as_py(), offset[row].as_py())


def _pairs(headers: pa.Array) -> list[Any]:
    """Return each row's headers as pairs of name and value; None if a row has none."""
    return [
        None if row is None else [(each["key"], each["value"]) for each in row if each is not None]
        for row in headers.to_pylist()
    ]


def _header_column(rows: list[Any]) -> pa.Array:
    structs = [None if row is None else [{"key": name, "value": value} for name, value in row] for row in rows]
    return pa.array(structs, _HEADERS)


def _replaced(batch: pa.RecordBatch, values: pa.Array, headers: pa.Array) -> pa.RecordBatch:
    """Return a batch with these columns in the places of the old ones; a new column is the last one."""
    columns = {name: batch.column(name) for name in batch.schema.names} | {"value": values, "headers": headers}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _with_bytes(schema: StructType) -> StructType:
    """Return the rows' types with `value` and `headers` as records have them."""
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    ours = (StructField("value", BinaryType()), StructField("headers", ArrayType(header)))
    fields = {each.name: each for each in (*schema.fields, *ours)}
    return StructType(list(fields.values()))


def _cluster_id(bootstrap: str | None, security: SecurityOptions) -> str:
    if not bootstrap:
        raise ValueError("payloads are kept by cluster: name its addresses with bootstrap, or the cluster itself")
    with Admin(bootstrap, security=security.client()) as admin:
        found = admin.describe_cluster().cluster_id
    if not found:
        raise ValueError("the broker did not name its cluster: name it with cluster")
    return found


def _opened(store: str, options: Mapping[str, str]) -> PayloadStore:
    return _open_once(store, tuple(sorted(options.items())))


@lru_cache(8)
def _open_once(store: str, options: tuple[tuple[str, str], ...]) -> PayloadStore:
    return open_store(store, dict(options))
