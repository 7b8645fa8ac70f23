"""`barnabas demo`: sends a shop's orders through a broker into a Spark pipeline, and shows the results live.

The pipeline is not here: it is `pipelines/shop`, which the demo copies into its folder and runs as a process of its own.
The demo plays the world around it: the shop that sends, the machine that fails, and the reader of the tables.

| module | holds |
|---|---|
| `shop` | the shop's three topics, each with its key, partitions, guarantee and retention |
| `generator`, `catalogue` | a small shop generated from a seed, if there is no input file |
| `events` | turns order lines into events of the three topics |
| `feeder` | sends the events to the broker, from a separate process |
| `partitions` | the partition of a key, for a feeder that continues |
| `new_shop` | a copy of the pipeline's project, from a wheel or from a clone |
| `shop_process` | the pipeline, as a process that can be killed |
| `tables`, `results` | what the pipeline has written, read without Spark |
| `answers` | sums and rankings computed from the results, and straight from the order lines |
| `display`, `chart` | show the results on the terminal and as a picture |
| `java` | finds the Java that Spark needs, or names what to install |
| `command` | the command line, and the order of the steps |
"""
