"""A consumer in a process of its own: writes what it processed into its group's file, and commits after.

    python -m tests.group.ordered_reader BOOTSTRAP GROUP KIND TOPIC FILE

KIND is `range` or `cooperative-sticky` (the classic protocol), or `consumer` (KIP-848). All members of a group write into one file, a
batch with one append, so the file has the order in which the group processed: `partition offset key number` a line. A killed member
loses at most its commit, and the next one writes these records again.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException

BATCH, PAUSE_S = 20, 0.04
"""Five hundred records a second at most: slower than the producer, so that old partitions have a backlog when the topic grows."""


def settings(kind: str) -> dict[str, object]:
    """Return what differs between the protocols."""
    if kind == "consumer":
        return {"group.protocol": "consumer"}
    return {"partition.assignment.strategy": kind, "session.timeout.ms": 6000, "heartbeat.interval.ms": 300}


def main(bootstrap: str, group: str, kind: str, topic: str, path: str) -> None:
    """Read until killed."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "latest", "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 500, "reconnect.backoff.max.ms": 500, **settings(kind),
    })  # fmt: skip
    consumer.subscribe([topic])
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        records = [each for each in consumer.consume(BATCH, 0.2) if each.error() is None]
        if not records:
            continue
        lines = [
            f"{each.partition()} {each.offset()} {(each.key() or b'').decode()} {(each.value() or b'').decode()}\n"
            for each in records
        ]
        os.write(file, "".join(lines).encode())
        time.sleep(PAUSE_S)  # A kill most often finds records that are processed and not committed.
        # After a rebalance or with a killed broker, the next member, or this one, processes these records again.
        with suppress(KafkaException):
            consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
