"""At most once: commit first, then process.

    python examples/at_most_once.py localhost:9092 orders

No record is processed twice. If the consumer dies after committing a record and before processing it, the record is
never processed. This is right for metrics, where a few lost records are acceptable and a duplicate is not.
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
    """Process a topic's records, each at most once.

    Args:
        bootstrap: the cluster's address.
        topic: what to read.
        process: the work for one record.
        enough: called after every poll; True ends the loop.
        settings: further librdkafka settings; they override those below.
    """
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "at-most-once", "auto.offset.reset": "earliest",
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
            # From here on the group counts this record as done. If process() does not complete, the record is lost.
            consumer.commit(message=message, asynchronous=False)
            process(message.value().decode())
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/at_most_once.py BOOTSTRAP-SERVERS TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        consume(sys.argv[1], sys.argv[2], print)
