"""Spark's data source for barnabas and Apache Kafka: `spark.read.format("barnabas")`, no jar.

The parts, in the order a query meets them:

| module | holds |
|---|---|
| `options` | the user's options, checked once and parsed into values |
| `offsets` | offsets as Spark writes them (JSON), where a query begins and ends, timestamps |
| `offset_reader` | the driver's requests: topics, partitions, offsets, the group's commit |
| `admission` | how many of the new offsets one micro-batch takes |
| `ranges` | ranges of offsets, and how they are split into tasks |
| `fetcher` | a task's connection: pipelined fetches of whole record batches |
| `columnar` | decodes record batches into Arrow columns |
| `data_loss` | fails the query or logs a warning when records are gone |
| `source`, `stream` | the readers that Spark calls |
| `retries` | a Python function for each record, whose failures become rows for retry topics and dead letters |

The package itself imports neither pyspark nor pyarrow; the modules that need them do. Spark finds the source through
the top-level module `pyspark_barnabas`.
"""
