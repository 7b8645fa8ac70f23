"""An administrative client for Kafka's protocol: connections, metadata, administration.

The command line, Spark's tasks and tests use it, against barnabas and Apache Kafka. It is blocking. Its producer takes encoded
batches, for Spark; for single records, and for consumers, there is confluent-kafka.

- `wire`: one connection: versions, pipelining, responses without copies.
- `cluster`: many connections: leaders, coordinators, retries within a deadline.
- `cluster_metadata`: brokers, topics, partitions.
- `patience`: retries for jobs that outlast a broker's restart.
- `producer`, `producer_transactions`: batches to leaders, and transactions that another process may end.
- `admin`: one method per question or change.
- `cuts`: named offsets, stored in the cluster.
- `partitioner`: where each client library puts a key.
- `properties`: Java properties files.
"""
