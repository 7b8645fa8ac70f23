"""A declarative pipeline that sends a topic: `create_sink` with our format, and each row once, whatever the runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from run_pipelines import Shop

import barnabas
from tests.chaos.from_shop import consumed
from tests.spark.session import SPARK

pytestmark = [
    *(mark for mark in SPARK if mark.name != "timeout"),
    pytest.mark.timeout(3600),  # four programs with Java, on a busy machine
    pytest.mark.conform,
]

PIPELINE = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
BROKER = {"kafka.bootstrap.servers": spark.conf.get("spark.shop.bootstrap.servers")}

dp.create_sink("to_topic", "barnabas", {**BROKER, "topic": "loud", "createTopics": "loud:2"})


@dp.append_flow(target="to_topic")
def loud():
    orders = spark.readStream.format("barnabas").options(**BROKER, subscribe="orders", startingOffsets="earliest")
    return orders.load().selectExpr("key", "upper(cast(value AS string)) AS value")
"""


def test_each_row_is_sent_once(tmp_path: Path) -> None:
    """The second run goes on where the first one ended; a third one finds nothing."""
    with barnabas.Broker() as broker:
        broker.create_topic("orders", partitions=2)
        shop = Shop(tmp_path / "shop", broker.bootstrap_servers)
        for old in (shop.folder / "transformations").iterdir():
            old.unlink()
        (shop.folder / "transformations" / "loud.py").write_text(PIPELINE)
        for first, end in ((0, 50), (50, 80), (80, 80)):
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            for row in range(first, end):
                producer.produce("orders", key=str(row), value=f"row {row}")
            assert producer.flush(60) == 0
            shop.run_pipelines()
            sent = consumed(broker.bootstrap_servers, "loud")
            assert sorted(int(each.key()) for each in sent) == list(range(end))
            assert {each.value() for each in sent} == {b"ROW %d" % row for row in range(end)}
