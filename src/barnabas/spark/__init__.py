"""Spark's data source for barnabas and Apache Kafka: `spark.read.format("barnabas")`, no jar.

The parts, in the order a query meets them:

| module | holds |
|---|---|
| `options` | the user's options, checked once and parsed into values |
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

The package itself imports neither pyspark nor pyarrow; the modules that need them do. Spark finds the source through
the top-level module `pyspark_barnabas`.
"""
