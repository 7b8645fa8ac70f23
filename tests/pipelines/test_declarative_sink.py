"""A declarative pipeline that sends a topic: `create_sink` with our format, and each row once, whatever the runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from run_pipelines import Shop

import barnabas
from tests.chaos.from_shop import consumed
from tests.spark.session import SPARK_PROGRAM

pytestmark = [
    *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
    pytest.mark.timeout(3600),  # four programs with Java, on a busy machine
    pytest.mark.conform,
]


RUNS = ((0, 50), (50, 80))


@pytest.mark.parametrize("runs", [RUNS, pytest.param((*RUNS, (80, 80)), marks=pytest.mark.long)], ids=["two", "three"])
def test_each_row_is_sent_once(runs: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    """The second run goes on where the first one ended; a third one finds nothing. Each starts Java."""
    with barnabas.Broker() as broker:
        broker.create_topic("orders", partitions=2)
        shop = Shop(tmp_path / "shop", broker.bootstrap_servers)
        for other in ("tables.py", "answers.sql"):
            (shop.folder / "transformations" / other).unlink()
        for first, end in runs:
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            for row in range(first, end):
                producer.produce("orders", key=str(row), value=f"row {row}")
            assert producer.flush(60) == 0
            shop.run_pipelines()
            sent = consumed(broker.bootstrap_servers, "orders.rejected")
            assert sorted(each.value() for each in sent) == sorted(b"row %d" % row for row in range(end))
            assert {dict(each.headers())["reason"] for each in sent} == {b"it is not an order line"}
