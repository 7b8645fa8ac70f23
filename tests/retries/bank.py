"""What consumers of the kill tests do; runs also as a process of its own: `python -m tests.retries.bank ADDRESS`, with `--hold-keys`."""

from __future__ import annotations

import sys

from barnabas.retries import Output, Record, RetryingConsumer, RetryPolicy

POLICY = RetryPolicy("orders.dlq", delays=("0s",), retries=2)


def charge(record: Record) -> list[Output]:
    """A value says how often it fails: `17:2` succeeds in the third attempt."""
    _, _, failures = (record.value or b"").decode().partition(":")
    if record.attempt <= int(failures):
        raise ConnectionError("the bank is closed")
    return [Output("bills", record.value, record.key)]


if __name__ == "__main__":
    settings = {"bootstrap.servers": sys.argv[1], "group.id": "billing"}
    settings |= {"session.timeout.ms": "1000", "heartbeat.interval.ms": "300"}
    with RetryingConsumer(settings, ["orders"], POLICY, hold_keys="--hold-keys" in sys.argv) as consumer:
        print("ready", flush=True)
        consumer.run(charge)
