"""A live cluster of Apache Kafka becomes one of barnabas: what is in the way, and the change of its nodes (`barnabas adopt`)."""
