"""A broker with orders in a topic, and programs of `examples` that work on them and die of SIGKILL."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDERS = [f"order-{number}" for number in range(8)]
VICTIM = ORDERS[3]
PATIENCE_SECONDS = 120

# A static member is known again at once; without it the group would wait out the dead member's session, which is longer than a busy
# machine may keep a living member from its heartbeat.
# A program that does not end says where it stands, before the test's patience ends.
CHILD = """
import faulthandler, os, signal, sys
faulthandler.dump_traceback_later({stuck_seconds})
sys.path.insert(0, {examples!r})
import {example} as example

book = open({book!r}, "a", buffering=1)
settings = {{"group.id": {group!r}, "group.instance.id": "one", "session.timeout.ms": 60_000}}

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def enough():
    return os.path.exists({enough!r})
"""
KILLED = -9


class Stage:
    """A broker with orders in a topic, and the book that the processing writes."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.name = uuid.uuid4().hex[:8]
        self.book = folder / "book"
        self.enough = folder / "enough"
        self.book.touch()
        self.orders = self.topic("orders", ORDERS)
        self.invoices = self.topic("invoices", [])

    def topic(self, name: str, values: Sequence[str]) -> str:
        """Create a topic of one partition with these records; return its name."""
        topic = f"{name}-{self.name}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            created.result(PATIENCE_SECONDS)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(PATIENCE_SECONDS) == 0
        return topic

    def start(self, example: str, body: str) -> subprocess.Popen[bytes]:
        head = CHILD.format(
            examples=str(EXAMPLES),
            example=example,
            book=str(self.book),
            enough=str(self.enough),
            group=self.name,
            stuck_seconds=PATIENCE_SECONDS - 20,
        )
        return subprocess.Popen([sys.executable, "-c", head + body])

    def processed(self) -> list[str]:
        return self.book.read_text().split()

    def run_to_death_then_to_the_end(self, example: str, deadly: str, healthy: str, last: str) -> None:
        assert self.start(example, deadly).wait(PATIENCE_SECONDS) == KILLED
        self.run_until_processed({last}, [self.start(example, healthy)])

    def run_until_processed(self, wanted: set[str], programs: Sequence[subprocess.Popen[bytes]]) -> None:
        """Wait until all of these are in the book, and then for the programs' end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while not wanted <= set(self.processed()):
                assert time.monotonic() < deadline, self.processed()
                assert all(each.poll() is None for each in programs)
                time.sleep(0.05)
            self.enough.touch()
            assert [each.wait(PATIENCE_SECONDS) for each in programs] == [0] * len(programs)
        finally:
            for each in programs:
                each.kill()
                each.wait()

    def read_invoices(self, isolation: str, until: str) -> list[str]:
        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": f"{self.name}-{isolation}", "auto.offset.reset": "earliest",
            "isolation.level": isolation, "enable.partition.eof": True,
        })  # fmt: skip
        consumer.subscribe([self.invoices])
        found: list[str] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            assert time.monotonic() < deadline, found
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                if found and found[-1] == until:
                    break
                continue
            value = message.value()
            assert value is not None
            found.append(value.decode())
        consumer.close()
        return found
