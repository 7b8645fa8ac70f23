"""Files of any size through a topic: the file goes to a store, a small claim goes to the topic.

    python examples/large_messages.py send localhost:9092 videos /srv/payloads film.mp4
    python examples/large_messages.py receive localhost:9092 videos /srv/payloads incoming

The broker keeps its default limit of one megabyte for a batch. The store is a folder that both sides reach, or a place
such as `s3://bucket/kafka`. Its payloads are deleted with their records by `barnabas claims sweep videos --store …`,
once a day, for example.

A file is received at least once: its offset is committed when it is written. A payload that is gone or damaged is
reported, and the next file is received.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka import Consumer, Producer

from barnabas.claims import ClaimConsumer, ClaimProducer, PayloadError

PATIENCE_SECONDS = 120


def send(bootstrap: str, topic: str, store: str, files: Iterable[Path]) -> None:
    """Send files; the key of each is its name.

    Raises:
        RuntimeError: a file was not delivered.
    """
    producer = ClaimProducer(Producer({"bootstrap.servers": bootstrap}), store)
    failures: list[str] = []
    for file in files:
        producer.produce(
            topic,
            file.read_bytes(),
            file.name,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        producer.poll(0)
    left = producer.flush(PATIENCE_SECONDS)
    if left or failures:
        raise RuntimeError(f"{left + len(failures)} files were not delivered: {failures}")


def receive(
    bootstrap: str,
    topic: str,
    store: str,
    folder: Path,
    enough: Callable[[], bool] = lambda: False,
    lost: Callable[[PayloadError], None] = lambda error: print(error, file=sys.stderr),
) -> None:
    """Write each file of a topic into a folder.

    Args:
        bootstrap: the cluster's address.
        topic: what to read.
        store: where the payloads are.
        folder: where the files go.
        enough: called after every poll; True ends the loop.
        lost: called for a file whose payload is gone or damaged.
    """
    settings = {"bootstrap.servers": bootstrap, "group.id": "receivers", "auto.offset.reset": "earliest"}
    consumer = ClaimConsumer(Consumer({**settings, "enable.auto.commit": False}), store)
    consumer.subscribe([topic])
    try:
        while not enough():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                print(message.error().str(), file=sys.stderr)  # the library tries again
                continue
            try:
                _write(folder / Path(message.key().decode()).name, message.value())
            except PayloadError as error:
                lost(error)
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def _write(file: Path, content: bytes) -> None:
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(file)


if __name__ == "__main__":
    if len(sys.argv) < 6 or sys.argv[1] not in ("send", "receive"):
        sys.exit(
            "usage: python examples/large_messages.py send BOOTSTRAP-SERVERS TOPIC STORE FILE…\n"
            "       python examples/large_messages.py receive BOOTSTRAP-SERVERS TOPIC STORE FOLDER"
        )
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3], sys.argv[4], map(Path, sys.argv[5:]))
    else:
        with contextlib.suppress(KeyboardInterrupt):
            receive(sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
