"""`barnabas demo`: sends a shop's orders through a broker into a Spark pipeline, and shows the results live.

It uses only barnabas's public interface: `barnabas.Broker`, ordinary Kafka clients, and `format("barnabas")` in Spark.

| module | holds |
|---|---|
| `shop` | the shop's three topics, each with its key, partitions, guarantee and retention |
| `generator` | a small shop generated from a seed, if there is no input file |
| `events` | turns order lines into events of the three topics |
| `feeder` | sends the events to the broker, from a separate process |
| `pipeline` | the Structured Streaming queries |
| `results` | the pipeline's results, stored per micro-batch so that a repeated batch changes nothing |
| `answers` | sums and rankings computed from the results |
| `display`, `chart` | show the results on the terminal and as a picture |
| `java` | finds the Java that Spark needs, or names what to install |
| `command` | the command line, and the order of the steps |
"""
