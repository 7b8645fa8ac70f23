"""A query outlives its broker: it goes away while the query runs, and no row is lost or repeated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.spark import start
from tests.spark.session import SPARK, Topics

pytestmark = SPARK

# On a busy machine Apache Kafka needs half a minute more to come up, so that the default of a minute is too little.
MORE = {"barnabas": {}, "kafka": {"kafka.default.api.timeout.ms": "240000"}}


class Barnabas:
    """A broker that comes back at its address, with its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = barnabas.Broker(data_dir=folder)
        self.bootstrap_servers = ""

    def start(self) -> None:
        if self.bootstrap_servers:
            self.broker = barnabas.Broker(data_dir=self.folder, port=int(self.bootstrap_servers.rpartition(":")[2]))
        self.bootstrap_servers = self.broker.start().bootstrap_servers

    def stop(self) -> None:
        self.broker.stop()


def broker_of(kind: str, folder: Path) -> Any:
    if kind == "barnabas":
        return Barnabas(folder)
    import apache_kafka

    if not apache_kafka.home().exists():
        pytest.skip("Apache Kafka is not here: python tools/apache_kafka.py install")
    return apache_kafka.ApacheKafka(folder)


@pytest.mark.parametrize(
    ("kind", "away_s"),
    [
        pytest.param("barnabas", 12, marks=pytest.mark.conform),
        pytest.param("barnabas", 30, marks=pytest.mark.long),
        pytest.param("kafka", 30, marks=[pytest.mark.conform, pytest.mark.long]),
    ],
)
def test_a_broker_that_is_away_for_a_time(spark: Any, tmp_path: Path, kind: str, away_s: float) -> None:
    """Three retries a second apart ended the query after eight seconds."""
    broker = broker_of(kind, tmp_path / "broker")
    broker.start()
    servers = broker.bootstrap_servers
    topics = Topics(servers)
    topic = topics.create(partitions=2)
    rows = (
        spark.readStream.format("barnabas")
        .options(
            **{"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **MORE[kind]}
        )
        .load()
        .selectExpr("cast(value as string) as value")
    )
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("parquet")
    query = start(writer.option("path", str(tmp_path / "table")))
    try:
        topics.values(topic, [f"a{i}" for i in range(50)])
        query.processAllAvailable()
        broker.stop()
        assert not threading.Event().wait(away_s)
        assert query.isActive
        broker.start()
        topics.values(topic, [f"b{i}" for i in range(50)], partition=1)
        query.processAllAvailable()
        assert query.isActive
    finally:
        query.stop()
        broker.stop()
    found = sorted(row.value for row in spark.read.parquet(str(tmp_path / "table")).collect())
    assert found == sorted([f"{name}{i}" for name in "ab" for i in range(50)])
