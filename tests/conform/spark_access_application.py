"""A Spark application that reads and writes a secured cluster, with all of Spark's own logging on. `test_spark_access` reads what it says.

python spark_access_application.py FOLDER OPTIONS      OPTIONS is a file with the options of each user; FOLDER gets all that Spark writes
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.spark import start

Options = dict[str, str]


class Application:
    """The queries, each with the options of a user who has the rights that it needs, and those of others who have not."""

    def __init__(self, folder: Path, given: dict[str, Any]) -> None:
        from pyspark.sql import SparkSession

        self.folder = folder
        self.users: dict[str, Options] = given["users"]
        events = folder / "events"
        events.mkdir()
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.planChangeLog.level", "INFO")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.dir", events.as_uri())
            .config("spark.eventLog.compress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .getOrCreate()
        )

    def read(self, user: str) -> int:
        rows = self.spark.read.format("barnabas").options(**self.users[user], subscribe="orders").load()
        rows.explain("extended")
        rows.explain("cost")
        print(self.users[user].keys(), rows, rows.schema)
        return rows.count()

    def copy(self, reader: str, writer: str, delivery: str, name: str) -> list[dict[str, Any]]:
        """Copy the topic in a stream, and return its progress."""
        rows = (
            self.spark.readStream.format("barnabas")
            .options(**self.users[reader], subscribe="orders", startingOffsets="earliest")
            .option("kafka.group.id", "orders-to-table")
            .load()
            .select("value")
        )
        stream = (
            rows.writeStream.format("barnabas")
            .options(**self.users[writer], topic="orders.clean", delivery=delivery)
            .option("checkpointLocation", str(self.folder / "checkpoints" / name))
            .trigger(availableNow=True)
        )
        query = start(stream)
        query.awaitTermination()
        query.explain(True)
        print(*(each.json for each in query.recentProgress), sep="\n")
        return [{"rows": each.numInputRows, "sink": each.sink.description} for each in query.recentProgress]

    def append(self, user: str, **options: str) -> str:
        rows = self.spark.createDataFrame([("a batch",)], "value string")
        rows.write.format("barnabas").options(**self.users[user], topic="orders.clean", **options).mode("append").save()
        return "written"

    def run(self) -> dict[str, Any]:
        steps: dict[str, Callable[[], Any]] = {
            "read": lambda: self.read("reader"),
            "read by PLAIN": lambda: self.read("plain"),
            "read by certificate": lambda: self.read("certificate"),
            "exactly once, without a right to the decisions": lambda: self.copy(
                "reader", "beginner", "exactly-once", "beginner"
            ),
            "exactly once": lambda: self.copy("reader", "exact", "exactly-once", "exact"),
            "at least once": lambda: self.copy("reader", "writer", "at-least-once", "writer"),
            "a batch, exactly once": lambda: self.append("exact", queryId="q", batchId="0"),
            "a batch, at least once": lambda: self.append("writer", delivery="at-least-once"),
            "read without a right": lambda: self.read("stranger"),
            "stream without a right": lambda: self.copy("stranger", "writer", "at-least-once", "stranger"),
            "write without a right": lambda: self.append("stranger", delivery="at-least-once"),
            "wrong password": lambda: self.read("forgetful"),
            "no such file": lambda: self.read("lost"),
        }
        results = {}
        for name, step in steps.items():
            try:
                results[name] = step()
            except Exception as error:  # the error is what the test wants to read
                print(f"{name}: {error}")
                results[name] = f"{type(error).__name__}: {error}"
        self.spark.stop()
        return results


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    where = Path(sys.argv[1])
    outcomes = Application(where, json.loads(Path(sys.argv[2]).read_text())).run()
    (where / "results.json").write_text(json.dumps(outcomes, indent=1))
