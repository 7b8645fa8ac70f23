"""Spark's data source and sink for barnabas and Apache Kafka: `format("barnabas")`, no jar.

    from barnabas.spark import decode, serve_metrics, start

- `decode(df, …)` makes a typed column of JSON, Avro or Protobuf, and keeps the error of each bad row.
- `start(writer)` starts a streaming query, and waits for the Python process of its source.
- `serve_metrics(spark, port)` serves the metrics of the session's queries for Prometheus.

The parts of the source, in the order a query meets them:

| module | holds |
|---|---|
| `options` | the user's options, checked once and parsed into values |
| `given_options` | options as a user gives them, read as numbers, booleans and addresses; the sink's too |
| `option_names` | the names that options may have, and near misses |
| `offsets` | offsets as Spark writes them (JSON), where a query begins and ends, timestamps |
| `offset_reader` | the driver's requests: topics, partitions, offsets, the group's commit |
| `stored_offset` | an offset of a stream as Spark's checkpoint stores it |
| `group_progress` | shows a query's progress as a consumer group's offsets |
| `admission` | how many of the new offsets one micro-batch takes |
| `pushed_filters` | filters that narrow what a batch reads |
| `ranges` | ranges of offsets, and how they are split into tasks |
| `fetcher` | a task's connection: pipelined fetches of whole record batches |
| `partition_lookup` | a task's questions about its one partition, when a fetch has failed |
| `columnar` | decodes record batches into Arrow columns |
| `data_loss` | fails the query, or records what it skips, when records are gone |
| `source_metrics` | how far a query is behind, from its progress |
| `plain_errors` | errors as one sentence, without a traceback |
| `source`, `stream` | the readers that Spark calls |
| `retries` | a Python function for each record, whose failures become rows for retry topics and dead letters |

The parts of the sink, in the order a row meets them:

| module | holds |
|---|---|
| `sink_options`, `sink_schema` | the user's options and columns, checked once |
| `sink` | the writers that Spark calls |
| `task_writer` | writes the rows of one task |
| `sink_columns`, `key_hash` | which rows go to which partition |
| `encoder` | encodes Arrow columns into record batches |
| `task_producers` | the producers of a Python worker |
| `sink_protocol` | the driver's part: what counts, and what a crash leaves |
| `decisions` | the record of the last batch, in `__barnabas_sink` |

The package itself imports neither pyspark nor pyarrow; the modules that need them do, and each function is imported when
it is first used. Spark finds source and sink through the top-level module `pyspark_barnabas`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.spark.decoding.decode import decode as decode
    from barnabas.spark.queries.query_listener import serve_metrics as serve_metrics
    from barnabas.spark.queries.start import start as start

__all__ = ["decode", "serve_metrics", "start"]

_MODULES = {
    "decode": "barnabas.spark.decoding.decode",
    "serve_metrics": "barnabas.spark.queries.query_listener",
    "start": "barnabas.spark.queries.start",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        globals()[name] = found = getattr(import_module(_MODULES[name]), name)
        return found
    raise AttributeError(f"module 'barnabas.spark' has no attribute {name!r}")
