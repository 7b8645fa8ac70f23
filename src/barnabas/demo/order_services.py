"""Two of the three services that read the shop's orders; the third is the pipeline. Each is a group of its own, at its own pace.

    python -m barnabas.demo.order_services fulfilment|notifications SERVERS FOLDER [CONFIG]

- fulfilment packs each line of an order, and takes back what is cancelled;
- notifications sends a confirmation when an order is created, and a note when one is cancelled.

Both read at least once: the work is written first, the offsets are committed after. What is read again is recognised by its order and
line, so it changes nothing. Each keeps its work in a database of SQLite in the folder, and events that it cannot use in a table of
their own.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from barnabas.demo.shop import ORDERS
from barnabas.demo.shop_broker import ShopBroker

CREATED, UPDATED, CANCELLED = ORDERS.events


class Unusable(Exception):
    """An event that a service cannot use; the message is the reason."""


class OrderService(ABC):
    """Takes the events of orders, one after the other.

    Attributes:
        name: also the database's, and the end of its group's.
        batch: records that it takes at a time, before it commits: its pace.
    """

    name: ClassVar[str]
    batch: ClassVar[int]
    tables: ClassVar[str]

    @abstractmethod
    def take(self, database: sqlite3.Connection, event: dict[str, Any]) -> None:
        """Write the work of an event; a second time it changes nothing.

        Raises:
            Unusable: the event cannot be used.
            KeyError: the event lacks a field.
        """


class Fulfilment(OrderService):
    """Packs lines and takes cancelled ones back; it works in large steps."""

    name = "fulfilment"
    batch = 1000
    tables = """
        CREATE TABLE IF NOT EXISTS packed (order_id TEXT, line INTEGER, stock_code TEXT, pieces INTEGER, PRIMARY KEY (order_id, line));
        CREATE TABLE IF NOT EXISTS returned (order_id TEXT, line INTEGER, stock_code TEXT, pieces INTEGER, PRIMARY KEY (order_id, line));
    """

    def take(self, database: sqlite3.Connection, event: dict[str, Any]) -> None:
        try:
            pieces = int(event["quantity"])
        except ValueError:
            raise Unusable("the quantity is not a number") from None
        table, pieces = ("returned", -pieces) if event["event"] == CANCELLED else ("packed", pieces)
        row = (event["order"], event["line"], event["stock_code"], pieces)
        database.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", row)


class Notifications(OrderService):
    """Sends mails, into a table; it works in small steps, as each mail takes its time."""

    name = "notifications"
    batch = 100
    tables = "CREATE TABLE IF NOT EXISTS mails (order_id TEXT, kind TEXT, at TEXT, PRIMARY KEY (order_id, kind));"

    def take(self, database: sqlite3.Connection, event: dict[str, Any]) -> None:
        order = event["order"]
        if event["event"] == UPDATED:
            # The key keeps an order's events in order: its creation was read before.
            if not database.execute("SELECT 1 FROM mails WHERE order_id = ?", (order,)).fetchone():
                raise Unusable("it updates an order that was not created")
            return
        kind = "confirmation" if event["event"] == CREATED else "cancellation"
        database.execute("INSERT INTO mails VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (order, kind, event["at"]))


SERVICES: dict[str, type[OrderService]] = {each.name: each for each in (Fulfilment, Notifications)}
_SET_ASIDE = "CREATE TABLE IF NOT EXISTS set_aside (partition INTEGER, offset INTEGER, reason TEXT, PRIMARY KEY (partition, offset))"


def group_of(name: str) -> str:
    """Return the group of a service."""
    return f"shop-{name}"


@contextlib.contextmanager
def database_of(name: str, folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield the database of a service, with its tables."""
    with contextlib.closing(sqlite3.connect(folder / f"{name}.sqlite", isolation_level=None)) as database:
        database.executescript(SERVICES[name].tables)
        database.execute(_SET_ASIDE)
        yield database


def serve(
    name: str,
    broker: ShopBroker,
    folder: Path,
    is_over: Callable[[], bool],
    reached: Callable[[str], None] = lambda step: None,
) -> None:
    """Do a service's work until it is over.

    Args:
        is_over: called between two batches.
        reached: called after each step of a batch; tests kill the process here.

    Raises:
        KafkaException: the group lost its offsets, or its records; or a partition cannot be read.
    """
    service = SERVICES[name]()
    consumer = Consumer(
        {
            **broker.library_settings(),
            "group.id": group_of(name),
            # A service that was killed gets its partitions back when it starts, not after its own session has ended.
            "group.instance.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )
    consumer.subscribe([ORDERS.name])
    try:
        with database_of(name, folder) as database:
            while not is_over():
                messages = consumer.consume(service.batch, 0.2)
                if not messages:
                    continue
                database.execute("BEGIN IMMEDIATE")
                _work(service, database, messages)
                reached("worked")
                database.execute("COMMIT")
                reached("written")
                consumer.commit(asynchronous=False)
                reached("committed")
    finally:
        consumer.close()


def _work(service: OrderService, database: sqlite3.Connection, messages: Iterable[Message]) -> None:
    for message in messages:
        if error := message.error():
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART or error.retriable():
                continue
            raise KafkaException(error)
        try:
            try:
                event = json.loads(message.value() or b"")
            except ValueError:
                event = None
            if not isinstance(event, dict):
                raise Unusable("it is not an event")
            service.take(database, event)
        except (Unusable, KeyError) as reason:
            row = (message.partition(), message.offset(), str(reason))
            database.execute("INSERT INTO set_aside VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)


def main(name: str, servers: str, folder: str, config: str | None = None) -> None:
    """Serve until SIGTERM; `config` is a client's properties file."""
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: over.append(number))
    serve(name, ShopBroker(servers, Path(config) if config else None), Path(folder), lambda: bool(over))


if __name__ == "__main__":
    main(*sys.argv[1:])
