"""The week with all of it: a broker, the source, a streaming query, the table's writer."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from apache_kafka import free_port
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from barnabas.spark import start
from barnabas.spark.tables import delta_writer, iceberg_writer
from barnabas.verify.faults import LocalBroker
from tests.spark.tables.appending import catalog_in
from tests.week.measured import resident_mb
from tests.week.week import Week

ROWS = 10
_BATCHES_A_SECOND = 10
"""More than there are: the topic has the rows of this many."""


def run(week: Week, minutes: float) -> None:
    """Let a query write the week's table for some minutes."""
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "barnabas.main", "start", "--listen", address]
    broker = LocalBroker([*command, "--data-dir", str(week.folder / "broker")], address, week.folder / "broker.log")
    broker.start()
    spark = _session()
    try:
        _fill(address, int(minutes * 60 * _BATCHES_A_SECOND * ROWS))
        week.java_mb = _java_mb
        _query(spark, week, address, minutes)
    finally:
        spark.stop()
        broker.stop()


def _query(spark: SparkSession, week: Week, address: str, minutes: float) -> None:
    options = {"kafka.bootstrap.servers": address, "subscribe": "orders", "startingOffsets": "earliest"}
    rows = spark.readStream.format("barnabas").options(**options, maxOffsetsPerTrigger=str(ROWS)).load()
    write, until_s, is_over = _writer(week), time.monotonic() + minutes * 60, threading.Event()

    def batch(rows: Any, batch_id: int) -> None:
        write(rows, batch_id)
        week.after_batch()
        if time.monotonic() > until_s:
            is_over.set()

    writer = rows.writeStream.foreachBatch(batch).trigger(processingTime="0 seconds")
    query = start(writer.option("checkpointLocation", str(week.folder / "checkpoint")))
    while query.isActive and not is_over.wait(1):
        pass
    if not query.isActive:
        raise RuntimeError(f"the query ended: {query.exception()}")
    query.stop()


def _writer(week: Week) -> Any:
    if week.kind == "delta":
        return delta_writer(week.folder / "table")
    return iceberg_writer("shop.orders", catalog_in(week.folder))


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        SparkSession.builder.master("local[1]")
        .appName("week")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def _fill(address: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for row in range(rows):
        producer.produce("orders", value=f'{{"order": {row}, "amount": {row % 97}.50, "country": "Norway"}}')
        if row % 100_000 == 0:
            producer.flush()
    producer.flush()


def _java_mb() -> float:
    """Return the resident memory of Spark's Java process, which this one started."""
    found = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    java = [pid for pids in found for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    return resident_mb(java[0])
