"""A live cluster of Apache Kafka becomes one of barnabas: what is in the way (`barnabas adopt check`)."""
