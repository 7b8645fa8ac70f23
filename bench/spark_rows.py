"""What is measured with Spark: our source and sink beside Spark's own Kafka connector, on one barnabas broker.

Both sides run in one session of two task slots and take turns. A row is a context: it fills what both sides read, and
yields a function that measures one side.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.bare_sockets import percentile
from bench.report import CONNECTOR, OURS, Results, print_table
from bench.scenarios import Figures, Running, librdkafka, start
from bench.spark_process import SparkProcess

SIDES = (OURS, CONNECTOR)
SLOTS = 2
PARTITIONS = 6
BATCH_BYTES = 50_000_000
# What a user sets who has read that Spark's sink is slow: with Kafka's defaults it sends small batches.
TUNED_SINK = {"kafka.linger.ms": "20", "kafka.batch.size": "262144"}
# With the default of 500 ms each task of Spark's source waits so long, whatever it reads.
TUNED_SOURCE = {"kafka.fetch.max.wait.ms": "50"}
Measure = Callable[[str], Figures]


@dataclass
class Stage:
    """The broker and the session that the rows share."""

    running: Running
    spark: SparkProcess
    inputs: int = field(default=0)

    @contextmanager
    def filled(self, size: int, megabytes: float) -> Iterator[tuple[str, int]]:
        """A topic with about so many megabytes of records of `size` bytes; yields its name and their number."""
        count = int(megabytes * 1e6 / size)
        with self.running.topic(PARTITIONS) as topic:
            librdkafka("produce", self.running.broker.bootstrap_servers, topic, count, size, 131_072, "1")
            yield topic, count

    def files(self, count: int, rows: int, size: int) -> str:
        """Files as the input of a sink; returns their folder's name."""
        self.inputs += 1
        name = f"input-{self.inputs}"
        self.spark.ask("files", name=name, count=count, rows=rows, size=size)
        return name


@dataclass(frozen=True)
class SparkRow:
    """A row of the table: a name, and how to prepare and measure it.

    Attributes:
        warm: how many runs that are not counted come first.
    """

    name: str
    prepare: Callable[[Stage], AbstractContextManager[Measure]]
    warm: int = 1


def run_rows(rows: list[SparkRow], runs: int, results: Results) -> None:
    """Measure both sides in turn, and print each row's table when it is done."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = start(OURS, Path(folder))
        try:
            with SparkProcess(running.broker.bootstrap_servers, SLOTS) as spark:
                stage = Stage(running, spark)
                for row in rows:
                    with row.prepare(stage) as measure:
                        for side in SIDES * row.warm:
                            measure(side)
                        for _ in range(runs):
                            for side in SIDES:
                                results.add(row.name, side, measure(side))
                    print_table(results, row.name)
        finally:
            running.broker.stop()


def source(side: str) -> str:
    """Return the format that a side reads and writes with."""
    return "barnabas" if side == OURS else "kafka"


@contextmanager
def batch_read(
    stage: Stage, size: int, megabytes: float, tuned: dict[str, str], ours: dict[str, str] | None = None
) -> Iterator[Measure]:
    with stage.filled(size, megabytes) as (topic, count):

        def measure(side: str) -> Figures:
            options = (ours or {}) if side == OURS else tuned
            done = stage.spark.ask("read", source=source(side), topic=topic, options=options)
            return rates(count, size, done["seconds"]) | {"Spark's CPU s/GB": done["cpu"] / (count * size / 1e9)}

        yield measure


@contextmanager
def stream_read(stage: Stage, size: int, megabytes: float, batches: int = 3) -> Iterator[Measure]:
    with stage.filled(size, megabytes) as (topic, count):

        def measure(side: str) -> Figures:
            # A few records more than a share, so that rounding makes no batch of a handful.
            each = count // batches + 100
            done = stage.spark.ask("stream", source=source(side), topic=topic, per_trigger=each)
            in_batches = sum(done["batch_seconds"])
            return {
                **rates(count, size, done["seconds"]),
                "MB/s within batches": count * size / 1e6 / in_batches,
                "start and stop s": done["seconds"] - in_batches,
                "Spark's CPU s/GB": done["cpu"] / (count * size / 1e9),
            }

        yield measure


def rates(count: int, size: int, seconds: float) -> Figures:
    return {"MB/s": count * size / 1e6 / seconds, "records/s": count / seconds}


@contextmanager
def sink(stage: Stage, batch_bytes: int, batches: int, tuned: dict[str, str]) -> Iterator[Measure]:
    """Batches of 1 KB rows; the first is not counted, because it connects producers."""
    size, per_file = 1000, batch_bytes // 1000 // SLOTS
    files = stage.files((batches + 1) * SLOTS, per_file, size)

    def measure(side: str) -> Figures:
        options = {"delivery": "exactly-once"} if side == OURS else tuned
        with stage.running.topic(PARTITIONS) as topic:
            done = stage.spark.ask(
                "sink", sink=source(side), topic=topic, files=files, per_batch=SLOTS, options=options
            )
        seconds, rows = sum(done["batch_seconds"][1:]), sum(done["batch_rows"][1:])
        return {
            **rates(rows, size, seconds),
            "a batch, s": statistics.median(done["batch_seconds"][1:]),
            "Spark's CPU s/GB": done["cpu"] / (sum(done["batch_rows"]) * size / 1e9),
        }

    yield measure


@contextmanager
def small_batch(stage: Stage, delivery: str, batches: int) -> Iterator[Measure]:
    """Batches of ten rows, in two tasks: what a batch costs that has nothing to write."""
    files = stage.files((batches + 1) * SLOTS, 10 // SLOTS, 100)

    def measure(side: str) -> Figures:
        options = {"delivery": delivery} if side == OURS else {}
        with stage.running.topic(PARTITIONS) as topic:
            done = stage.spark.ask(
                "sink", sink=source(side), topic=topic, files=files, per_batch=SLOTS, options=options
            )
        return {"a batch, s": statistics.median(done["batch_seconds"][1:])}

    yield measure


@contextmanager
def slots(stage: Stage, size: int, megabytes: float) -> Iterator[Measure]:
    """The batch read in a session with one task slot, and in the one with two."""
    servers = stage.running.broker.bootstrap_servers
    with stage.filled(size, megabytes) as (topic, count), SparkProcess(servers, 1) as one:

        def measure(side: str) -> Figures:
            figures, seconds = {}, []
            options = {} if side == OURS else TUNED_SOURCE
            for number, spark in enumerate((one, stage.spark), 1):
                seconds.append(spark.ask("read", source=source(side), topic=topic, options=options)["seconds"])
                figures[f"records/s, slots={number}"] = count / seconds[-1]
            return figures | {"2 slots as times 1": seconds[0] / seconds[1]}

        yield measure


@contextmanager
def latency(stage: Stage, seconds: float, every_seconds: float = 0.097) -> Iterator[Measure]:
    """Single records, at all moments between two triggers: from sending to the end of the batch that has them."""

    def measure(side: str) -> Figures:
        with stage.running.topic(SLOTS) as topic:
            found = stage.spark.ask(
                "latency", source=source(side), topic=topic, partitions=SLOTS, records=int(seconds / every_seconds),
                every_seconds=every_seconds,
            )["seconds"]  # fmt: skip
        found.sort()
        return {"p50 s": percentile(found, 0.5), "p95 s": percentile(found, 0.95)}

    yield measure


@contextmanager
def memory(stage: Stage, megabytes: float) -> Iterator[Measure]:
    """A session of its own for each figure, so that its workers have done nothing else. The connector has none."""
    files = (int(megabytes), 1000, 1000)
    with stage.filled(1000, megabytes) as (topic, _):

        def measure(side: str) -> Figures:
            if side != OURS:
                return {}
            with SparkProcess(stage.running.broker.bootstrap_servers, SLOTS) as spark:
                for _ in range(2):
                    spark.ask("read", source="barnabas", topic=topic, options={})
                reading = max(spark.ask("workers")["megabytes"])
            with SparkProcess(stage.running.broker.bootstrap_servers, SLOTS) as spark:
                count, rows, size = files
                spark.ask("files", name="input", count=count, rows=rows, size=size)
                with stage.running.topic(PARTITIONS) as target:
                    spark.ask("sink", sink="barnabas", topic=target, files="input", per_batch=50, options={})
                writing = max(spark.ask("workers")["megabytes"])
            return {"reading: most MB": reading, "writing exactly once: most MB": writing}

        yield measure


def spark_rows(megabytes: float, seconds: float) -> list[SparkRow]:
    """Return the rows; a run of `make bench` with the defaults takes less than ten minutes for all of them.

    Args:
        megabytes: a third of what a batch read of 1 KB records reads.
        seconds: a third of the time for which single records are sent.
    """
    batch = min(BATCH_BYTES, int(megabytes * 1e6))
    return [
        SparkRow("spark: batch read of 1000 B", lambda stage: batch_read(stage, 1000, 3 * megabytes, {}), 2),
        SparkRow("spark: batch read of 100 B", lambda stage: batch_read(stage, 100, megabytes / 2, {}), 2),
        SparkRow(
            "spark: batch read of 1000 B; the connector with fetch.max.wait.ms=50",
            lambda stage: batch_read(stage, 1000, 3 * megabytes, TUNED_SOURCE),
        ),
        SparkRow(
            "spark: batch read of 100 B; the connector with fetch.max.wait.ms=50",
            lambda stage: batch_read(stage, 100, megabytes / 2, TUNED_SOURCE),
        ),
        SparkRow(
            "spark: batch read of 100 B; ours with columns=value,offset, the connector with fetch.max.wait.ms=50",
            lambda stage: batch_read(stage, 100, megabytes / 2, TUNED_SOURCE, {"columns": "value,offset"}),
        ),
        SparkRow(
            "spark: stream read of 1000 B, availableNow, three batches", lambda r: stream_read(r, 1000, 2 * megabytes)
        ),
        SparkRow(
            f"spark: exactly-once sink, batches of {batch // 1_000_000} MB; the connector's at least once, its defaults",
            lambda stage: sink(stage, batch, 5, {}),
        ),
        SparkRow(
            f"spark: exactly-once sink, batches of {batch // 1_000_000} MB; the connector's at least once, linger.ms=20,"
            " batch.size=262144",
            lambda stage: sink(stage, batch, 5, TUNED_SINK),
        ),
        SparkRow(
            "spark: a batch of ten rows, exactly once; the connector's at least once",
            lambda stage: small_batch(stage, "exactly-once", 10),
        ),
        SparkRow("spark: a batch of ten rows, both at least once", lambda r: small_batch(r, "at-least-once", 10)),
        SparkRow(
            "spark: batch read of 1000 B, from one to two task slots; the connector with fetch.max.wait.ms=50",
            lambda r: slots(r, 1000, megabytes),
        ),
        SparkRow("spark: latency of a one-second trigger", lambda stage: latency(stage, 3 * seconds), warm=0),
        SparkRow("spark: memory of a Python worker", lambda stage: memory(stage, megabytes), warm=0),
    ]
