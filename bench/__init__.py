"""barnabas and Apache Kafka measured side by side in one run: `make bench`.

Both brokers run on the same cores, one at a time, and every figure is taken from each in turn (ours, theirs, ours, theirs …), so that a
machine that speeds up or slows down does so for both. Only ratios are worth quoting; the table also shows the medians they come from.
Spark's rows have the same two sides on one broker: our source and sink, and Spark's own Kafka connector.
CPU seconds come from `/proc`, so a broker's cost does not depend on what the load generator does beside it.
"""
