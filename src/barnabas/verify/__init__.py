"""Does this cluster keep Kafka's promises? A consistency checker for any Kafka address.

Clients append integers that are unique to partitions, read them back, and do both in transactions, while brokers may be killed.
What each client asked for and what it was told is a history; the checker looks for a contradiction between the history and what
a log with transactions may do.

Reading order: `history`, `analysis`, `anomalies`, `cycles`, `verdict` are the checker and touch nothing
but values; `generator` decides what clients do; `worker` does it, through one of two producers; `run` puts a run together.

Source: the method and the names of the anomalies are those of Jepsen's `tests.kafka`.
"""
