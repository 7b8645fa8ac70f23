"""Spark's data source and sink for barnabas and Apache Kafka: `format("barnabas")`, no jar.

The parts of the source, in the order a query meets them:

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

The package itself imports neither pyspark nor pyarrow; the modules that need them do. Spark finds the source through
the top-level module `pyspark_barnabas`.
"""
