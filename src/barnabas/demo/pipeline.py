"""The Structured Streaming pipeline: turns the shop's topics into results.

It has six queries, each with its own checkpoint. A query can be killed at any moment and resumes where it was:

| query | reads | state | result |
|---|---|---|---|
| `lines` | orders | – | clean lines as a parquet table; invalid lines with the reason; large lines |
| `revenue` | orders | sums per minute and country, in windows, until the watermark closes them | revenue over time and per country |
| `best_sellers` | orders | sums per article | pieces and revenue per article |
| `taken_back` | orders, twice | large lines of the last day | those cancelled within the hour |
| `stock` | inventory | the newest level per article | the level of each article |
| `payments` | payments | the latest event of each payment | which payments are completed, pending, failed |

**Late events.** Windows close one day (`queries.LATENESS`) after the newest event seen. The feeder starts a new day
only when the previous day is complete in the topics, so no event is dropped; `Pipeline.dropped` counts dropped rows,
and the demo reports the number.

**Repeated events.** `stock` and `payments` keep the newest value of each key instead of sums, so a repeated event
counts once. Order lines count once because the producer is idempotent and the checkpoint stores offsets.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from barnabas.demo import queries
from barnabas.demo.results import ResultTable
from barnabas.demo.shop import INVENTORY, ORDERS, PAYMENTS
from barnabas.spark.query_start import PATIENCE_S, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BatchSink: TypeAlias = "Callable[[DataFrame, int], None]"

# More tasks than cores would not read six partitions faster.
_TASKS = 2
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """The progress of one query."""

    name: str
    batches: int
    rows: int
    last_batch_s: float
    rows_per_s: float


def open_session(folder: Path) -> SparkSession:
    """Start Spark on this machine; it logs to `spark.log` in the folder."""
    # The workers must run the interpreter that has barnabas, whatever `python3` is on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    with _output_to(folder / "spark.log"):
        return (
            # Spark retries a failed task, as on a cluster.
            SparkSession.builder.master("local[2, 4]")
            .appName("barnabas demo")
            .config("spark.driver.memory", "2g")
            # The parallel collector's threads would take the cores from the tasks.
            .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC")
            # Hadoop's file contexts start a process to read each link and each permission.
            .config(
                "spark.sql.streaming.checkpointFileManagerClass",
                f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
            )
            .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
            .config("spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .config("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "2")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.scheduler.mode", "FAIR")
            .config("spark.sql.shuffle.partitions", str(_TASKS))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            # A filter on parsed columns that is pushed below the parsing parses every line once per column.
            .config("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates")
            .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
            .config("spark.sql.streaming.forceDeleteTempCheckpointLocation", "true")
            .getOrCreate()
        )


class Pipeline:
    """The six queries over one broker and one folder.

    Args:
        spark: the session.
        bootstrap_servers: a broker that has the shop's topics.
        folder: for checkpoints and results; an earlier pipeline in this folder is continued.
    """

    def __init__(self, spark: SparkSession, bootstrap_servers: str, folder: Path) -> None:
        self._spark = spark
        self._servers = bootstrap_servers
        self._folder = folder
        self._queries: list[StreamingQuery] = []
        self.starting = ""
        """The query that is being started, for the display."""
        results = folder / "results"
        self.revenue = ResultTable(results / "revenue", ("minute", "country"))
        self.best_sellers = ResultTable(results / "best_sellers", ("stock_code",))
        self.taken_back = ResultTable(results / "taken_back", ("order", "line"))
        self.large_lines = ResultTable(results / "large_lines", ("order", "line"))
        self.stock = ResultTable(results / "stock", ("stock_code",))
        self.payments = ResultTable(results / "payments", ("payment",))
        self.outcomes = ResultTable(results / "outcomes", ("batch", "reason"))

    def __repr__(self) -> str:
        return f"<Pipeline servers={self._servers} folder={self._folder} queries={len(self._queries)}>"

    @property
    def clean_lines(self) -> Path:
        """The folder of the clean lines, a parquet table."""
        return self._folder / "lines"

    @property
    def dead_letters(self) -> Path:
        """The folder of the lines that were set aside, a parquet table."""
        return self._folder / "dead-letters"

    def start(self, *, available_now: bool = False, patience_s: float = PATIENCE_S) -> None:
        """Start every query; with `available_now` each ends when it has read what is in the topics now.

        Args:
            patience_s: how long to retry a query whose source starts too slowly.
        """
        clean = queries.parse_orders(self._read(ORDERS.name)).where("reason is null")
        # The key alone shows a cancellation, so the second reading of all orders parses few of them.
        cancelled = queries.parse_orders(self._read(ORDERS.name).where("cast(key as string) like 'C%'")).where(
            "reason is null"
        )
        starts: dict[str, tuple[DataFrame, str, BatchSink]] = {
            "lines": (queries.parse_orders(self._read(ORDERS.name)), "append", self._store_lines),
            "revenue": (queries.revenue(clean), "update", _into(self.revenue)),
            "best_sellers": (queries.best_sellers(clean), "update", _into(self.best_sellers)),
            "taken_back": (queries.taken_back(clean, cancelled), "append", _into(self.taken_back)),
            "stock": (queries.stock(self._read(INVENTORY.name)), "update", _into(self.stock)),
            "payments": (queries.payments(self._read(PAYMENTS.name)), "update", _into(self.payments)),
        }
        for number, (name, (rows, mode, sink)) in enumerate(starts.items(), 1):
            self.starting = f"query {number} of {len(starts)}, {name}"
            writer = (
                rows.writeStream.queryName(name)
                .outputMode(mode)
                .option("checkpointLocation", str(self._folder / "checkpoints" / name))
                .foreachBatch(sink)
            )
            if available_now:
                writer = writer.trigger(availableNow=True)
            self._queries.append(start(writer, patience_s))

    def drain(self) -> None:
        """Wait until every query has read what is in the topics now.

        Raises:
            StreamingQueryException: a query failed.
        """
        for query in self._queries:
            query.processAllAvailable()

    def wait(self) -> None:
        """Wait until every query has ended, after `start(available_now=True)`."""
        for query in self._queries:
            query.awaitTermination()

    def is_warm(self) -> bool:
        """Return whether queries of orders have stored rows. The batch of a query's start is empty, and warms little."""
        return all(table.rows() for table in (self.outcomes, self.revenue, self.best_sellers))

    def check(self) -> None:
        """Raise the exception of a failed query, if there is one."""
        for query in self._queries:
            if (error := query.exception()) is not None:
                raise error

    def stop(self) -> None:
        """Stop every query."""
        for query in self._queries:
            with contextlib.suppress(Exception):
                query.stop()

    def progress(self) -> list[QueryProgress]:
        """Return the progress of each query."""
        found = []
        for query in self._queries:
            reports = [report for report in query.recentProgress if report.numInputRows]
            last = reports[-1] if reports else None
            found.append(
                QueryProgress(
                    name=query.name or "",
                    batches=0 if last is None else last.batchId + 1,
                    rows=sum(report.numInputRows for report in reports),
                    last_batch_s=0.0 if last is None else last.batchDuration / 1000,
                    rows_per_s=0.0 if last is None else last.processedRowsPerSecond or 0.0,
                )
            )
        return found

    def dropped(self) -> int:
        """Return how many rows were too late for their window."""
        return sum(
            operator.numRowsDroppedByWatermark
            for query in self._queries
            for report in query.recentProgress
            for operator in report.stateOperators
        )

    def _read(self, topic: str) -> DataFrame:
        return (
            self._spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("kafka.group.id", f"demo-{topic}")
            .load()
            .coalesce(_TASKS)
        )

    def _store_lines(self, batch: DataFrame, batch_id: int) -> None:
        """Split a batch into clean lines and dead letters, and count both."""
        from pyspark.sql import functions as F

        batch = batch.persist()
        clean = batch.where("reason is null").drop("reason", "value")
        clean.write.mode("overwrite").parquet(str(self.clean_lines / f"batch={batch_id}"))
        bad = batch.where("reason is not null").select("topic", "partition", "offset", "reason", "value")
        bad.write.mode("overwrite").parquet(str(self.dead_letters / f"batch={batch_id}"))
        counted = batch.groupBy("reason").agg(F.count("*").alias("lines")).withColumn("batch", F.lit(batch_id))
        self.outcomes.put(batch_id, counted.toArrow())
        self.large_lines.put(batch_id, queries.large_lines(batch.where("reason is null")).toArrow())
        batch.unpersist()


def _into(table: ResultTable) -> BatchSink:
    def store(batch: DataFrame, batch_id: int) -> None:
        table.put(batch_id, batch.toArrow())

    return store


@contextlib.contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Redirect the output of this process and its children to a file.

    Spark's Java process inherits the descriptors and keeps them; this process restores its own at the end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for descriptor, original in enumerate(kept, start=1):
            os.dup2(original, descriptor)
            os.close(original)
