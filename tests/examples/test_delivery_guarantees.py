"""The three delivery guarantees, shown by killing the consumer at the worst moment.

    guarantee       worst moment                                       what the table promises      what is seen
    at most once    after the commit, while the record is processed    message loss                 exactly that record is missing
    at least once   after the processing, before the commit            duplicate processing         exactly that record is twice
    exactly once    at each step of the transaction                    neither                      every record once

The consumer is a process of its own and dies of SIGKILL, from inside, at a named point; a second one finishes the work.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import KafkaProcess

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDERS = [f"order-{number}" for number in range(8)]
VICTIM = ORDERS[3]
PATIENCE_SECONDS = 120

# A static member is known again at once; without it the group would wait out the dead member's session, which is longer than a busy
# machine may keep a living member from its heartbeat.
CHILD = """
import os, signal, sys
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
        self.orders = f"orders-{self.name}"
        self.invoices = f"invoices-{self.name}"
        self.book = folder / "book"
        self.enough = folder / "enough"
        self.book.touch()
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for created in admin.create_topics([NewTopic(self.orders, 1, 1), NewTopic(self.invoices, 1, 1)]).values():
            created.result(PATIENCE_SECONDS)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for order in ORDERS:
            producer.produce(self.orders, order)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def start(self, example: str, body: str) -> subprocess.Popen[bytes]:
        head = CHILD.format(
            examples=str(EXAMPLES), example=example, book=str(self.book), enough=str(self.enough), group=self.name
        )
        return subprocess.Popen([sys.executable, "-c", head + body])

    def processed(self) -> list[str]:
        return self.book.read_text().split()

    def run_to_death_then_to_the_end(self, example: str, deadly: str, healthy: str, last: str) -> None:
        assert self.start(example, deadly).wait(PATIENCE_SECONDS) == KILLED
        second = self.start(example, healthy)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while last not in self.processed():
                assert time.monotonic() < deadline, self.processed()
                assert second.poll() is None
                time.sleep(0.05)
            self.enough.touch()
            assert second.wait(PATIENCE_SECONDS) == 0
        finally:
            second.kill()
            second.wait()

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
            found.append(message.value().decode())
        consumer.close()
        return found


pytestmark = pytest.mark.timeout(5 * PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    with KafkaProcess(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


@pytest.fixture(params=["barnabas_broker", pytest.param("apache_kafka", marks=pytest.mark.conform)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(request.getfixturevalue(request.param).bootstrap_servers, tmp_path)


@pytest.mark.slow
def test_at_most_once_loses_what_was_being_processed(stage: Stage) -> None:
    deadly = f"""
def process(order):
    if order == {VICTIM!r}:
        die()
    print(order, file=book)
example.consume({stage.bootstrap!r}, {stage.orders!r}, process, enough, settings)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("at_most_once", deadly, healthy, ORDERS[-1])
    assert stage.processed() == [order for order in ORDERS if order != VICTIM]


@pytest.mark.slow
def test_at_least_once_repeats_what_was_not_committed(stage: Stage) -> None:
    deadly = f"""
def process(order):
    print(order, file=book)
    if order == {VICTIM!r}:
        die()
example.consume({stage.bootstrap!r}, {stage.orders!r}, process, enough, settings)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("at_least_once", deadly, healthy, ORDERS[-1])
    position = ORDERS.index(VICTIM)
    assert stage.processed() == [*ORDERS[: position + 1], *ORDERS[position:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "left_behind"), [("written", [VICTIM]), ("offset sent", [VICTIM]), ("committed", [])]
)
def test_exactly_once_survives_every_moment(stage: Stage, moment: str, left_behind: list[str]) -> None:
    deadly = f"""
current = None
def invoice(order):
    global current
    current = order
    return "invoice-" + order
def reached(step):
    if (current, step) == ({VICTIM!r}, {moment!r}):
        die()
    if step == "committed":
        print(current, file=book)
example.transform({stage.bootstrap!r}, {stage.orders!r}, {stage.invoices!r}, invoice, enough, settings, reached)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("exactly_once", deadly, healthy, ORDERS[-1])
    invoices = [f"invoice-{order}" for order in ORDERS]
    assert stage.read_invoices("read_committed", invoices[-1]) == invoices
    # The dead instance's record is in the log, and only those see it who ask for uncommitted records.
    position = ORDERS.index(VICTIM)
    aborted = [f"invoice-{order}" for order in left_behind]
    uncommitted = stage.read_invoices("read_uncommitted", invoices[-1])
    assert uncommitted == [*invoices[:position], *aborted, *invoices[position:]]
