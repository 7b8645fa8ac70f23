"""The compatibility card: which client does what on barnabas and on Apache Kafka, as a run found it."""
