"""At least once: process first, then commit.

    python examples/at_least_once.py localhost:9092 orders

No record is lost. If the consumer dies after processing a record and before committing it, the record is processed
again. This is right for most work, if repeating it does no harm (an upsert, setting a value).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer


def consume(
    bootstrap: str,
    topic: str,
    process: Callable[[str], None],
    enough: Callable[[], bool] = lambda: False,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Process a topic's records, each at least once.

    Args:
        bootstrap: the cluster's address.
        topic: what to read.
        process: the work for one record.
        enough: called after every poll; True ends the loop.
        settings: further librdkafka settings; they override those below.
    """
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "at-least-once", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, **(settings or {}),
    })  # fmt: skip
    consumer.subscribe([topic])
    try:
        while not enough():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                print(message.error().str(), file=sys.stderr)  # for example a missing topic; the library retries
                continue
            process(message.value().decode())
            # If the consumer dies before this commit is acknowledged, the record is processed again.
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/at_least_once.py BOOTSTRAP-SERVERS TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        consume(sys.argv[1], sys.argv[2], print)
