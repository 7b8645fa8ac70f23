"""`barnabas demo`: a shop's orders through a broker into a Spark pipeline, and out as live answers.

Shell; uses nothing of barnabas but what any user has: `barnabas.Broker`, ordinary Kafka clients, and
`format("barnabas")` in Spark.

| module | holds |
|---|---|
| `shop` | the shop's three topics, each with its key, partitions, guarantee and retention |
| `generator` | a small shop made up from a seed, for when there is no file |
| `events` | order lines become events of the three topics |
| `feeder` | the events' way into the broker, in a process of its own |
| `pipeline` | the Structured Streaming queries |
| `results` | the pipeline's answers: kept per micro-batch, so that a replayed one changes nothing |
| `display`, `chart` | the answers on the terminal and as a picture |
| `java` | finds the Java that Spark needs, or says what to install |
| `command` | the command line, and the order in which all this happens |
"""
