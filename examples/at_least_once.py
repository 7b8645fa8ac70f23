"""At least once: process first, then commit.

    python examples/at_least_once.py localhost:9092 orders

Nothing is lost. What was processed and not yet committed when the consumer died is processed again: right for most work, if doing
it twice does no harm (an upsert, a set of a value).
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
        bootstrap: where the cluster answers.
        topic: what to read.
        process: does the work for one record.
        enough: asked after every poll; True ends.
        settings: more of librdkafka's, over the ones here.
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
                print(message.error().str(), file=sys.stderr)  # a topic that is not there, say; the library tries again
                continue
            process(message.value().decode())
            # Dying before this commit has been answered brings the record again.
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/at_least_once.py BOOTSTRAP-SERVERS TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        consume(sys.argv[1], sys.argv[2], print)
