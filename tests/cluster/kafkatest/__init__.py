"""Apache Kafka's own system tests (kafkatest), with Apache Kafka's own programs, on clusters of either kind.

- `java_program`: a program of Apache Kafka in a process, which prints events, can be ended, killed and started again.
- `copiers`: `TransactionalMessageCopier`, and a console consumer that reads committed records beside it.
- `bounces`: nodes that end, cleanly or not, and return.
- `reassignments`: kafka-reassign-partitions, begun and waited for.

The programs and the checks are those of kafkatest. The times are those of `cluster.SETTINGS`, so a bounce takes seconds and not a minute.
"""
