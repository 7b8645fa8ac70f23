"""Retries with delays, and dead letters, for consumers in plain Python.

    policy = RetryPolicy(dead_letter="orders.dlq", delays=("10s", "1m", "10m"))
    settings = {"bootstrap.servers": "localhost:9092", "group.id": "billing"}
    with RetryingConsumer(settings, ["orders"], policy) as consumer:
        consumer.run(charge)

A record whose `charge` raises goes to `orders.retry.1`, then to `orders.retry.2`, and at last to `orders.dlq`. `docs/retries.md` has the
guarantees, the names of the headers and the limits.

- `policy`: the policy, and the names of topics that follow from it; `headers`: what a failed record carries.
- `routing`: where a record goes that failed or is held back; `held_keys`: which keys are held back. Both do no I/O.
- `consumer`: the consumer; `arrivals`: its records that wait; `forwarding`: its transactions; `topics`: the topics that it needs.
- `delivery`: records that shall be delivered at the time in their header.
- `redrive`: sends dead letters back; `redriven`: which were sent; `committed_records`: reads partitions.
- `replay`: sends a topic's records to another one; `replayed`: how far it is; `pace`: how fast.

The consumer needs confluent-kafka, the extra `cli`; a policy and records do not, so Spark's executors do without.
"""

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from barnabas.retries.consumer import RetryingConsumer as RetryingConsumer
    from barnabas.retries.policy import RetryPolicy as RetryPolicy
    from barnabas.retries.record import Later as Later
    from barnabas.retries.record import Output as Output
    from barnabas.retries.record import Record as Record

__all__ = ["Later", "Output", "Record", "RetryPolicy", "RetryingConsumer"]

_found = imported_when_used(
    __name__,
    Later="barnabas.retries.record",
    Output="barnabas.retries.record",
    Record="barnabas.retries.record",
    RetryPolicy="barnabas.retries.policy",
    RetryingConsumer="barnabas.retries.consumer",
)


def __getattr__(name: str) -> object:
    with needed_by(f"barnabas.retries.{name}", "cli"):
        return _found(name)
