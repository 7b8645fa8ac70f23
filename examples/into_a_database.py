"""Exactly once into a database: the rows and the offset are one transaction of the database.

    python examples/into_a_database.py localhost:9092 orders orders.sqlite

Each order is in the table once, whenever this program dies and however often its producer sent it. Three things
guarantee it:

- the offset stands in the database and is written in the transaction of its row, so that both are there or neither.
  A partition is read on from that offset, and not from the group's;
- a record below the offset changes nothing. Such a record comes from an instance that another one has replaced;
- an order has an id, and the table takes an id once: `INSERT … ON CONFLICT DO NOTHING`. This also removes duplicates
  that the producer made, which no offset can tell apart.

Any database with transactions and unique keys does the same. A store without transactions needs the third point, and
then reads a record again rather than lose it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, item TEXT NOT NULL, quantity INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
);
"""
# Does nothing if the offset is there already; then the record is too.
ADVANCE = """
INSERT INTO offsets VALUES (?, ?, ?)
ON CONFLICT (topic, partition) DO UPDATE SET next = excluded.next WHERE excluded.next > next
"""


def consume(
    bootstrap: str,
    topic: str,
    database: Path,
    enough: Callable[[], bool] = lambda: False,
    settings: Mapping[str, object] | None = None,
    reached: Callable[[str, str], None] = lambda order, step: None,
) -> None:
    """Write each order of a topic into the database once.

    Args:
        bootstrap: the cluster's address.
        topic: what to read: records whose values are JSON objects with `id`, `item` and `quantity`.
        database: a file of SQLite; it is made if it is missing.
        enough: called after every poll; True ends the loop.
        settings: further librdkafka settings; they override those below.
        reached: called with an order's id after each step of its transaction; tests kill the process here.
    """
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "into-a-database", "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",  # retention has passed the offset: an error, never a gap in the table
        **(settings or {}),
    })  # fmt: skip
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.executescript(TABLES)

        def begin(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            for each in partitions:
                each.offset = _next_offset(connection, each.topic, each.partition)
            consumer.assign(partitions)

        consumer.subscribe([topic], on_assign=begin)
        try:
            while not enough():
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if error := message.error():
                    if error.code() == KafkaError._AUTO_OFFSET_RESET:
                        raise KafkaException(error)
                    print(error.str(), file=sys.stderr)  # for example a missing topic; the library retries
                    continue
                _write(connection, message, reached)
        finally:
            consumer.close()


def _next_offset(connection: sqlite3.Connection, topic: str, partition: int) -> int:
    query = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"
    found = connection.execute(query, (topic, partition)).fetchone()
    return int(found[0]) if found else OFFSET_BEGINNING


def _write(connection: sqlite3.Connection, message: Message, reached: Callable[[str, str], None]) -> None:
    order = json.loads(message.value())
    reached(order["id"], "read")
    connection.execute("BEGIN IMMEDIATE")
    try:
        here = (message.topic(), message.partition(), message.offset() + 1)
        if connection.execute(ADVANCE, here).rowcount:
            reached(order["id"], "offset written")
            row = (order["id"], order["item"], order["quantity"])
            connection.execute("INSERT INTO orders VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", row)
            reached(order["id"], "row written")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    reached(order["id"], "committed")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python examples/into_a_database.py BOOTSTRAP-SERVERS TOPIC DATABASE")
    with contextlib.suppress(KeyboardInterrupt):
        consume(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
