"""A table that takes each order once: its program is killed at each step, and its producer sends an order twice."""

from __future__ import annotations

import importlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.examples.stage import EXAMPLES, ORDERS, PATIENCE_SECONDS, VICTIM, Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5 * PATIENCE_SECONDS)]


def value(order: str) -> str:
    return json.dumps({"id": order, "item": f"item of {order}", "quantity": len(order)})


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "orders.sqlite"


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("offset written", marks=pytest.mark.conform),
        "row written",
        pytest.param("committed", marks=pytest.mark.conform),
    ],
)
def test_a_kill_at_each_step_leaves_each_order_once(stage: Stage, database: Path, moment: str) -> None:
    sent = [*ORDERS[:2], ORDERS[0], *ORDERS[2:]]  # one of them twice
    topic = stage.topic("sold", [value(order) for order in sent])
    deadly = f"""
from pathlib import Path
from typing import Any
def reached(order, step):
    if (order, step) == ({VICTIM!r}, {moment!r}):
        die()
    if step == "committed":
        print(order, file=book)
example.consume({stage.bootstrap!r}, {topic!r}, Path({str(database)!r}), enough, settings, reached)
"""
    stage.run_to_death_then_to_the_end("into_a_database", deadly, deadly.replace("die()", "pass"), ORDERS[-1])
    # The second instance read on behind the last offset in the database, not from the first record.
    untold = [VICTIM] if moment == "committed" else []
    assert stage.processed() == [order for order in sent if order not in untold]
    assert rows(database, "SELECT * FROM orders") == [(order, f"item of {order}", len(order)) for order in ORDERS]
    assert rows(database, "SELECT next FROM offsets") == [(len(sent),)]


def test_an_instance_that_was_replaced_changes_nothing(
    stage: Stage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first instance holds an order that it has not written, another one writes that order and all others."""
    monkeypatch.syspath_prepend(EXAMPLES)
    into_a_database = importlib.import_module("into_a_database")
    topic = stage.topic("sold", [value(order) for order in ORDERS])
    offsets: list[int] = []

    def all_are_written() -> bool:
        return rows(database, "SELECT count(*) FROM orders") == [(len(ORDERS),)]

    def reached(order: str, step: str) -> None:
        if (order, step) == (VICTIM, "read"):
            settings = {"group.id": f"{stage.name}-other"}
            into_a_database.consume(stage.bootstrap, topic, database, all_are_written, settings)
        if step == "committed":
            offsets.extend(next_ for (next_,) in rows(database, "SELECT next FROM offsets"))

    settings = {"group.id": stage.name}
    into_a_database.consume(stage.bootstrap, topic, database, lambda: len(offsets) == len(ORDERS), settings, reached)
    position, end = ORDERS.index(VICTIM), len(ORDERS)
    assert offsets == [*range(1, position + 1), *[end] * (end - position)]


def test_an_offset_that_retention_has_passed_is_an_error(
    stage: Stage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    into_a_database = importlib.import_module("into_a_database")
    topic = stage.topic("sold", [value(order) for order in ORDERS])
    settings = {"group.id": stage.name}
    into_a_database.consume(
        stage.bootstrap, topic, database, lambda: bool(rows(database, "SELECT * FROM orders")), settings
    )
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, len(ORDERS) - 1)]).values()
    deleted.result(PATIENCE_SECONDS)
    with pytest.raises(KafkaException, match="out of range"):
        into_a_database.consume(stage.bootstrap, topic, database, settings=settings)
