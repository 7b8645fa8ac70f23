"""Spark's side of the benchmark, a process of its own: reads jobs as JSON lines from stdin and answers each with one.

python -m bench.spark_jobs MASTER BOOTSTRAP FOLDER JARS

One session runs all jobs of both sides, so that a job finds it warm. A job says how long its work took; what the
processes cost, the caller sees from outside. Whatever else writes to stdout goes to stderr.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.spark import start
from bench.process_cost import family, peak_megabytes

Answer = dict[str, Any]

ALIKE = {"kafka.isolation.level": "read_committed"}
"""For the source of either side; their defaults differ."""


@dataclass
class Jobs:
    """The jobs; each method is one, and its arguments are the line's."""

    spark: SparkSession
    servers: str
    folder: Path

    def read(self, source: str, topic: str, options: dict[str, str]) -> Answer:
        """Read a topic as a batch, and throw the rows away."""
        began = time.perf_counter()
        reader = self.spark.read.format(source).option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", topic).options(**{**ALIKE, **options})
        reader.load().write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - began}

    def stream(self, source: str, topic: str, per_trigger: int) -> Answer:
        """Read what a topic has as a stream, about `per_trigger` records in a batch, and throw the rows away."""
        rows = self._stream(source, topic, startingOffsets="earliest", maxOffsetsPerTrigger=per_trigger)
        began = time.perf_counter()
        with self._query(rows, "noop", availableNow=True) as query:
            query.awaitTermination()
            seconds = time.perf_counter() - began
            batches = batch_progress(query)
        return {
            "seconds": seconds,
            "batch_seconds": [seconds_of(batch) for batch in batches],
            "rows": sum(batch["numInputRows"] for batch in batches),
        }

    def files(self, name: str, count: int, rows: int, size: int) -> Answer:
        """Write `count` Parquet files of `rows` values of `size` bytes, as the input of sinks."""
        value = f"cast(substr(repeat(md5(cast(id as string)), {size // 32 + 1}), 1, {size}) as binary) as value"
        data = self.spark.range(0, count * rows, 1, count).selectExpr(value)
        data.write.option("compression", "none").parquet(str(self.folder / name))
        return {}

    def sink(self, sink: str, topic: str, files: str, per_batch: int, options: dict[str, str]) -> Answer:
        """Stream files into a topic, `per_batch` of them in a batch."""
        folder = str(self.folder / files)
        rows = self.spark.readStream.schema("value binary").option("maxFilesPerTrigger", per_batch).parquet(folder)
        options = {"kafka.bootstrap.servers": self.servers, "topic": topic, **options}
        with self._query(rows, sink, options, availableNow=True) as query:
            query.awaitTermination()
            batches = batch_progress(query)
        return {
            "batch_seconds": [seconds_of(batch) for batch in batches],
            "batch_rows": [batch["numInputRows"] for batch in batches],
        }

    def latency(self, source: str, topic: str, partitions: int, records: int, every_seconds: float) -> Answer:
        """Send single records under a query with a one-second trigger; see `ages`."""
        rows = self._stream(source, topic, startingOffsets="latest")
        with self._query(rows, "noop", processingTime="1 second") as query:
            while not batch_progress(query):
                raise_failure(query)
                send_singly(self.servers, topic, partitions, 1, 0.5)
            sent = send_singly(self.servers, topic, partitions, records, every_seconds)
            while len(found := ages(sent, batch_progress(query), topic)) < len(sent):
                raise_failure(query)
                time.sleep(0.1)
        return {"seconds": found}

    def workers(self) -> Answer:
        """Return the most memory that each Python worker has had since its start."""
        return {"megabytes": [peak_megabytes(pid) for pid in family(os.getpid()) - {os.getpid()} if is_worker(pid)]}

    def _stream(self, source: str, topic: str, **options: Any) -> DataFrame:
        reader = self.spark.readStream.format(source).option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", topic).options(**{**ALIKE, **options}).load()

    @contextlib.contextmanager
    def _query(
        self, rows: DataFrame, sink: str, options: dict[str, str] | None = None, **trigger: Any
    ) -> Iterator[StreamingQuery]:
        checkpoint = self.folder / f"checkpoint-{uuid.uuid4().hex}"
        writer = rows.writeStream.format(sink).options(**options or {}).option("checkpointLocation", str(checkpoint))
        query = start(writer.trigger(**trigger))
        try:
            yield query
            raise_failure(query)
        finally:
            query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)


def raise_failure(query: StreamingQuery) -> None:
    if (failure := query.exception()) is not None:
        raise failure


def batch_progress(query: StreamingQuery) -> list[dict[str, Any]]:
    """Return the progress of the batches that had rows."""
    return [each for progress in query.recentProgress if (each := json.loads(progress.json))["numInputRows"]]


def seconds_of(batch: dict[str, Any]) -> float:
    """From the trigger to the end of the batch, which is then in the checkpoint."""
    return float(batch["durationMs"]["triggerExecution"]) / 1e3


def send_singly(
    servers: str, topic: str, partitions: int, records: int, every_seconds: float
) -> dict[tuple[int, int], float]:
    """Send one record after the other; returns when each was sent, by partition and offset."""
    sent: dict[tuple[int, int], float] = {}
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    began = time.perf_counter()
    for number in range(records):

        def note(error: object, message: Any, at: float = time.time()) -> None:
            assert error is None, error
            sent[message.partition(), message.offset()] = at

        producer.produce(topic, b"x" * 100, partition=number % partitions, on_delivery=note)
        producer.poll(0)
        time.sleep(max(0.0, began + (number + 1) * every_seconds - time.perf_counter()))
    assert producer.flush(60) == 0
    return sent


def ages(sent: dict[tuple[int, int], float], batches: list[dict[str, Any]], topic: str) -> list[float]:
    """Return the seconds from sending to the end of the batch with the record, of all records that are in a batch."""
    found = []
    for (partition, offset), at in sent.items():
        for batch in batches:
            end = batch["sources"][0]["endOffset"]
            reached = (json.loads(end) if isinstance(end, str) else end)[topic]
            if reached.get(str(partition), 0) > offset:
                began = datetime.datetime.fromisoformat(batch["timestamp"]).timestamp()
                found.append(began + seconds_of(batch) - at)
                break
    return found


def is_worker(pid: int) -> bool:
    """Whether the process runs tasks. Its parent, which only forks it, has the same command line."""
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        commands = [Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, parent)]
    except OSError:
        return False
    return all(command.endswith(b"\0pyspark.daemon\0pyspark.worker\0") for command in commands)


def session(master: str, jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("bench").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    return builder.config("spark.log.level", "ERROR").config("spark.sql.session.timeZone", "UTC").getOrCreate()


def serve(jobs: Jobs, answers: TextIO) -> None:
    for line in sys.stdin:
        name, arguments = json.loads(line)
        job: Callable[..., Answer] = getattr(jobs, name)
        print(json.dumps(job(**arguments)), file=answers, flush=True)


def main(master: str, servers: str, folder: str, jars: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = session(master, jars)
    try:
        print(json.dumps({"spark": spark.version}), file=answers, flush=True)
        serve(Jobs(spark, servers, Path(folder)), answers)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
