"""A Spark Connect client, which has no Java: `python -m tests.spark.connect_client STEP URL SERVERS FOLDER`.

It is a program, because a process has sessions of Spark Connect or of Spark itself, not both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from barnabas.spark import start
from barnabas.spark.tables import delta_writer, iceberg_writer
from tests.spark.tables.appending import catalog_in

BATCH, COPY, FIRST, SECOND = "connect-batch", "connect-copy", 400, 600
_PATIENCE_S = 240


def write_and_read_a_batch(spark: Any, cluster: dict[str, str]) -> None:
    """Write rows twice under one number, and read what is there."""
    rows = spark.range(FIRST).selectExpr("cast(id as string) value")
    for _ in range(2):
        sink = rows.write.format("barnabas").options(**cluster, topic=BATCH, createTopics=f"{BATCH}:2")
        sink.option("queryId", "connect").option("batchId", 0).mode("append").save()
    found = spark.read.format("barnabas").options(**cluster, subscribe=BATCH).load()
    print(found.selectExpr("int(string(value)) as n").agg({"n": "sum", "*": "count"}).collect()[0].asDict())


def queries(spark: Any, cluster: dict[str, str], folder: Path, trigger: dict[str, Any]) -> Iterator[Any]:
    """Start one query into a topic, and one into a table of each format."""

    def start_one(name: str, to: Any) -> Any:
        given = {"subscribe": BATCH, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "60"}
        writer = spark.readStream.format("barnabas").options(**cluster, **given).load().writeStream
        if to is None:
            writer = writer.format("barnabas").options(**cluster, topic=COPY, createTopics=f"{COPY}:2")
        else:
            writer = writer.foreachBatch(to)
        checkpoint = str(folder / "checkpoints" / name)
        return start(writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger))

    yield start_one("topic", None)
    yield start_one("delta", delta_writer(folder / "table", query_id="orders-to-delta"))
    yield start_one("iceberg", iceberg_writer("shop.orders", catalog_in(folder), query_id="orders-to-iceberg"))


def run_until_killed(spark: Any, cluster: dict[str, str], folder: Path) -> None:
    """Run the queries; say when each is past its second batch, and go on until the server is gone."""
    running = list(queries(spark, cluster, folder, {"processingTime": "1 second"}))
    deadline_s = time.monotonic() + _PATIENCE_S
    while any(query.lastProgress is None or query.lastProgress.batchId < 2 for query in running):
        assert time.monotonic() < deadline_s, [query.status for query in running]
        assert not any(query.exception() for query in running), [query.exception() for query in running]
        time.sleep(0.2)
    print("in the middle", flush=True)
    sys.stdin.read()


def run_to_the_end(spark: Any, cluster: dict[str, str], folder: Path) -> None:
    """Let the queries go on from their checkpoints, to the end of the topic."""
    for query in queries(spark, cluster, folder, {"availableNow": True}):
        assert query.awaitTermination(_PATIENCE_S), query.status


def write_without_an_id(spark: Any, cluster: dict[str, str], folder: Path) -> None:
    """Print what a writer says that does not know its query."""
    rows = spark.readStream.format("barnabas").options(**cluster, subscribe=BATCH, startingOffsets="earliest").load()
    writer = rows.writeStream.foreachBatch(delta_writer(folder / "unnamed"))
    query = start(
        writer.option("checkpointLocation", str(folder / "checkpoints" / "unnamed")).trigger(availableNow=True)
    )
    try:
        query.awaitTermination(_PATIENCE_S)
    except Exception as error:
        print(error)


if __name__ == "__main__":
    step, url, servers, where = sys.argv[1:]
    session = SparkSession.builder.remote(url).getOrCreate()
    options = {"kafka.bootstrap.servers": servers}
    match step:
        case "batch":
            write_and_read_a_batch(session, options)
        case "until-killed":
            run_until_killed(session, options, Path(where))
        case "to-the-end":
            run_to_the_end(session, options, Path(where))
        case "without-an-id":
            write_without_an_id(session, options, Path(where))
