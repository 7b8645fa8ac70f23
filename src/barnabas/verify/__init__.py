"""A consistency checker for Kafka clusters: does a cluster keep Kafka's promises?

Clients append integers that are unique to partitions, read them back, and do both in transactions, while brokers may be killed.
The requests and answers of all clients are a history; the checker looks for contradictions between the history and what a log with
transactions may do.

Reading order: `history`, `analysis`, `anomalies`, `cycles` and `verdict` are the checker, pure functions of a history; `generator`
decides what a client does; `worker` does it, with one of two producers; `run` puts a run together.

Source: the method and the names of the anomalies are those of Jepsen's `tests.kafka`.
"""
