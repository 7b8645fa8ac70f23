"""Spark's data source for barnabas and Apache Kafka: `spark.read.format("barnabas")`, no jar.

The parts, in the order a query meets them:

| module | holds |
|---|---|
| `options` | what the user wrote, checked once and turned into values |
| `offsets` | offsets as Spark writes them (JSON), where to begin and end, moments in time |
| `offset_reader` | the driver's questions to the cluster: topics, partitions, offsets, the group's commit |
| `admission` | how much of what is new one micro-batch takes |
| `ranges` | offsets of two moments become ranges, and ranges become tasks |
| `fetcher` | a task's connection: pipelined fetches of whole record batches |
| `columnar` | record batches become Arrow columns |
| `source`, `stream` | the readers that Spark calls |

The package imports neither pyspark nor pyarrow by itself; the modules that need them do. Spark finds the source by the
top-level module `pyspark_barnabas`.
"""
