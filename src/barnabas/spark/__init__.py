"""Spark's data source and sink for barnabas and Apache Kafka: `format("barnabas")`, no jar.

    from barnabas.spark import decode, encode, serve_metrics, start

- `decode(df, …)` makes a typed column of JSON, Avro or Protobuf, and keeps the error of each bad row.
- `encode(df, …)` makes a column of bytes of typed columns, for topics that other programs read.
- `start(writer)` starts a streaming query, and waits for the Python process of its source.
- `serve_metrics(spark, port)` serves the metrics of the session's queries for Prometheus.

The source, in the order a query meets its parts:

| `source/` | holds |
|---|---|
| `options` | the user's options, checked once and parsed into values |
| `batch`, `stream` | the readers that Spark calls |
| `batch_range` | where a batch begins and ends |
| `option_words` | the names by which errors call options |
| `offset_reader` | the driver's requests: topics, partitions, offsets, the group's commit |
| `offsets`, `stored_offset` | where a query begins and ends; an offset of a stream as Spark's checkpoint stores it |
| `named_positions` | where a consumer group or a cut stands |
| `pushed_filters` | filters that narrow what a batch reads |
| `admission` | how many of the new offsets one micro-batch takes |
| `ranges` | ranges of offsets, and how they are split into tasks |
| `fetcher`, `columnar` | a task's pipelined fetches of whole record batches, and these as Arrow columns |
| `numpy_decoder`, `native_decoder`, `piece` | how records become columns, with numpy and with barnabas-native |
| `partition_lookup` | a task's questions about its one partition, when a fetch has failed |
| `data_loss`, `skipped_ranges` | fails the query, or records what it skips, when records are gone; counts what was skipped |
| `group_progress`, `commit_mark` | a query's progress as a consumer group's offsets, and the mark on them |
| `metrics`, `unread_since` | how far a query is behind, in records and in time |

The sink, in the order a row meets its parts:

| `sink/` | holds |
|---|---|
| `options`, `schema` | the user's options and columns, checked once |
| `writers` | the writers that Spark calls |
| `task_writer` | writes the rows of one task |
| `columns`, `key_hash` | which rows go to which partition |
| `encoder` | encodes Arrow columns into record batches |
| `task_producers` | the producers of a Python worker |
| `protocol` | the driver's part: which transactions count, and what a crash leaves |
| `decisions` | the record of the last batch, in `__barnabas_sink` |

`decoding/` has `decode` and the formats, `encoding/` has `encode`, `tables/` a topic as a Delta or Iceberg table and
its audit (`lake` is its former name), `queries/` the start and the metrics of queries. Beside these folders:
`salted_keys` (hot keys spread over several partitions), `given_options` and `option_names` (options as a user gives
them, near misses), `security_options` (TLS and login), `denied` (missing rights in words), `named_topics` (topics that
may not exist), `native_library` (whether barnabas-native is used),
`arrow_buffers` (Arrow arrays without pandas), `claims` (large values in a store), `plain_errors` (errors as one
sentence), `retries` (a Python function for each record, whose failures become rows for retry topics and dead letters).

The package itself imports neither pyspark nor pyarrow; the modules that need them do, and each function is imported when
it is first used. Spark finds source and sink through the top-level module `pyspark_barnabas`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.spark.decoding.decode import decode as decode
    from barnabas.spark.encoding.encode import encode as encode
    from barnabas.spark.queries.query_listener import serve_metrics as serve_metrics
    from barnabas.spark.queries.start import start as start

__all__ = ["decode", "encode", "serve_metrics", "start"]

__getattr__ = imported_when_used(
    __name__,
    decode="barnabas.spark.decoding.decode",
    encode="barnabas.spark.encoding.encode",
    serve_metrics="barnabas.spark.queries.query_listener",
    start="barnabas.spark.queries.start",
)
