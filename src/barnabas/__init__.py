"""barnabas: a distributed commit log that speaks Apache Kafka's protocol."""
