"""Speaking to a cluster from outside: connections, metadata, administration.

Shell plane, blocking. What the command line, Spark's tasks and tests need to ask brokers, in Kafka's protocol, of
barnabas and of Apache Kafka alike. There is no producer and no consumer here: those exist, and ours would be one more.

- :mod:`barnabas.client.wire` one connection: versions, pipelining, responses without copies.
- :mod:`barnabas.client.cluster` many connections: leaders, coordinators, retries within a deadline.
- :mod:`barnabas.client.cluster_metadata` what a cluster says of its brokers and topics.
- :mod:`barnabas.client.admin` one method per question or change.
- :mod:`barnabas.client.partitioner` where each client library puts a key.
"""
