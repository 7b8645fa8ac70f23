"""Names of certificates as Java and Kafka write and map them."""
