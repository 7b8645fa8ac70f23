"""One data directory and one server.properties, used by Apache Kafka, by barnabas and by Apache Kafka again."""
