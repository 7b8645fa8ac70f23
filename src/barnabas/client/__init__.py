"""An administrative client for Kafka's protocol: connections, metadata, administration.

The command line, Spark's tasks and tests use it, against barnabas and Apache Kafka. It is blocking. It has no producer and no
consumer: confluent-kafka has both.

- `wire`: one connection: versions, pipelining, responses without copies.
- `cluster`: many connections: leaders, coordinators, retries within a deadline.
- `cluster_metadata`: brokers, topics, partitions.
- `admin`: one method per question or change.
- `cuts`: named offsets, stored in the cluster.
- `partitioner`: where each client library puts a key.
- `properties`: Java properties files.
"""
