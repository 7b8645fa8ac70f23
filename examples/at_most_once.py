"""At most once: commit first, then process.

    python examples/at_most_once.py localhost:9092 orders

Nothing is processed twice. What was committed and not yet processed when the consumer died is never processed: right for metrics,
where a few lost records are acceptable and a doubled one is not.
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
        bootstrap: where the cluster answers.
        topic: what to read.
        process: does the work for one record.
        enough: asked after every poll; True ends.
        settings: more of librdkafka's, over the ones here.
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
                print(message.error().str(), file=sys.stderr)  # a topic that is not there, say; the library tries again
                continue
            # From here on the group counts this record as done. Dying before process() has ended loses it.
            consumer.commit(message=message, asynchronous=False)
            process(message.value().decode())
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/at_most_once.py BOOTSTRAP-SERVERS TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        consume(sys.argv[1], sys.argv[2], print)
