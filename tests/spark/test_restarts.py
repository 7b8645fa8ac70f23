"""A query outlives its broker: it goes away for half a minute while the query runs, and no row is lost or repeated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import barnabas
from barnabas.demo.pipeline import start_patiently
from tests.spark.session import SPARK, Topics

pytestmark = SPARK

AWAY_S = 30


def test_a_broker_that_is_away_for_half_a_minute(spark: Any, tmp_path: Path) -> None:
    """Three retries a second apart ended the query after eight seconds."""
    broker = barnabas.Broker(data_dir=tmp_path / "broker").start()
    servers = broker.bootstrap_servers
    topics = Topics(servers)
    topic = topics.create(partitions=2)
    rows = (
        spark.readStream.format("barnabas")
        .options(**{"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"})
        .load()
        .selectExpr("cast(value as string) as value")
    )
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("parquet")
    query = start_patiently(writer.option("path", str(tmp_path / "table")))
    try:
        topics.values(topic, [f"a{i}" for i in range(50)])
        query.processAllAvailable()
        broker.stop()
        assert not threading.Event().wait(AWAY_S)
        assert query.isActive
        broker = barnabas.Broker(data_dir=tmp_path / "broker", port=int(servers.rpartition(":")[2])).start()
        topics.values(topic, [f"b{i}" for i in range(50)], partition=1)
        query.processAllAvailable()
        assert query.isActive
    finally:
        query.stop()
        broker.stop()
    found = sorted(row.value for row in spark.read.parquet(str(tmp_path / "table")).collect())
    assert found == sorted([f"{name}{i}" for name in "ab" for i in range(50)])
