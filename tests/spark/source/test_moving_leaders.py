"""A source reads on three nodes while leaders die and move: every row once, whatever `failOnDataLoss` says.

A new leader's high watermark lags for a moment (KIP-207): a reader then gets no records although the plan of its batch
promises some, and must not take that for a log that was cut. The first test plans and reads batches without Spark, as
fast as it can, so that it meets such moments.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.spark import start
from barnabas.spark.source import fetcher
from barnabas.spark.source.options import parse_stream_options
from barnabas.spark.source.stream import StreamReader
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.node_process import KINDS
from tests.cluster.topics import create_safe_topic, create_topic
from tests.cluster.waiting import NeverCame, wait_for
from tests.spark.source.moving_leaders import Mover

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TOPIC, LOSSES = "numbers", "losses"
PARTITIONS = 3
BATCHES_AFTER = 3
STRIKES_MOST = 10
HELD_SECONDS = 2.0


@pytest.fixture(params=list(KINDS))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(request.param, tmp_path / "nodes") as found:
        create_safe_topic(found, TOPIC)
        create_safe_topic(found, LOSSES)
        yield found


def options(cluster: Cluster, fail_on_data_loss: bool) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        # What is skipped leaves a record.
        **({} if fail_on_data_loss else {"lossesTopic": LOSSES}),
    }


def check(cluster: Cluster, load: Load, rows: list[tuple[int, int, int]]) -> None:
    """Each acknowledged record is a row, once, and nothing was recorded as lost.

    Args:
        rows: partition, offset and number of each.
    """
    assert not load.failures
    assert sorted(number for *_, number in rows) == sorted(each.number for each in load.acknowledged)
    for partition in range(load.partitions):
        offsets = sorted(offset for where, offset, _ in rows if where == partition)
        assert offsets == list(range(len(offsets))), f"{TOPIC}-{partition} has gaps, or rows twice"
    lost = [partition for partition in range(PARTITIONS) if (cluster[1].data_dir / f"{LOSSES}-{partition}").exists()]
    for partition in lost:
        segments = (cluster[1].data_dir / f"{LOSSES}-{partition}").glob("*.log")
        assert not any(segment.stat().st_size for segment in segments), "something was recorded as lost"


class Reading:
    """The source without Spark: plans a batch and reads it, as fast as it can.

    Attributes:
        rows: partition, offset and number of each row.
        batches: how many had rows.
        waits: answers without records, each with the reason that the source gives.
    """

    def __init__(self, cluster: Cluster, fail_on_data_loss: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.batches = 0
        self.waits: list[str] = []
        self._reader = StreamReader(parse_stream_options(options(cluster, fail_on_data_loss), 0))
        self._position = self._reader.initialOffset()
        wait = fetcher.RangeFetcher._wait_for_records

        def counted(read: fetcher.RangeFetcher, why: str) -> None:
            self.waits.append(why)
            wait(read, why)

        monkeypatch.setattr(fetcher.RangeFetcher, "_wait_for_records", counted)

    def batch(self, after_plan: Callable[[], None] = lambda: None) -> None:
        end = self._reader.latestOffset(self._position, ReadAllAvailable())
        tasks = self._reader.partitions(self._position, end)
        after_plan()
        for task in tasks:
            for found in self._reader.read(task):
                columns = (found.column(name).to_pylist() for name in ("partition", "offset", "value"))
                self.rows += [(index, offset, int(value)) for index, offset, value in zip(*columns, strict=True)]
        self.batches += end != self._position
        self._position = end

    def finish(self) -> None:
        """Read what is there."""
        for _ in range(BATCHES_AFTER):
            self.batch()
        self._reader.stop()


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_batches_without_spark(cluster: Cluster, fail_on_data_loss: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(cluster, fail_on_data_loss, monkeypatch)
    load = Load(cluster.bootstrap_servers, TOPIC, PARTITIONS, per_second=500)
    mover = Mover(cluster, TOPIC, load)
    with load, mover.running(rounds=6) as over:
        while not over.is_set():
            reading.batch()
    reading.finish()
    print(f"{len(reading.rows)} rows in {reading.batches} batches, {mover.moves} moves, {len(reading.waits)} waits")
    assert mover.moves >= 12
    check(cluster, load, reading.rows)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_high_watermark_that_lags(
    kind: str, fail_on_data_loss: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A leader dies when a batch is planned; the next one's high watermark lags, as the other follower stands still.

    Without a controller of its own, the cluster would have no quorum meanwhile.
    """
    with Cluster(kind, tmp_path / "nodes", has_own_controller=True) as cluster:
        create_topic(cluster, TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
        create_safe_topic(cluster, LOSSES)
        reading = Reading(cluster, fail_on_data_loss, monkeypatch)
        load = Load(cluster.bootstrap_servers, TOPIC, 1, per_second=2000)
        mover = Mover(cluster, TOPIC, load)

        def strike() -> None:
            cluster[1].kill()
            cluster[3].pause()
            threading.Thread(target=heal, args=(len(reading.waits),)).start()

        def heal(waits: int) -> None:
            try:
                wait_for("node 2 leads", lambda: cluster.partition(TOPIC, 0).leader == 2)
                with contextlib.suppress(NeverCame):
                    wait_for("an answer has no records", lambda: len(reading.waits) > waits, HELD_SECONDS)
            finally:
                cluster[3].go_on()

        with load:
            for _ in range(STRIKES_MOST):
                load.await_more(200)
                reading.batch()
                load.await_more(20)
                reading.batch(after_plan=strike)
                cluster.start_again(cluster[1])
                cluster.await_in_sync([TOPIC])
                mover.elect()
                if reading.waits:
                    break
        reading.finish()
        print(f"{len(reading.rows)} rows, {mover.moves} moves, {len(reading.waits)} answers without records")
        check(cluster, load, reading.rows)
        assert reading.waits, "no high watermark lagged"


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
@pytest.mark.spark
@pytest.mark.slow
def test_a_query(spark: Any, cluster: Cluster, fail_on_data_loss: bool, tmp_path: Path) -> None:
    rows = spark.readStream.format("barnabas").options(**options(cluster, fail_on_data_loss)).load()
    writer = (
        rows.selectExpr("partition", "offset", "cast(cast(value as string) as int) as number")
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .format("parquet")
        .option("path", str(tmp_path / "table"))
    )
    load = Load(cluster.bootstrap_servers, TOPIC, PARTITIONS, per_second=500)
    mover = Mover(cluster, TOPIC, load)
    query = start(writer)
    try:
        with load, mover.running(rounds=4) as over:
            while not over.wait(1):
                assert query.isActive, query.exception()
        query.processAllAvailable()
        batches = query.lastProgress["batchId"]
    finally:
        query.stop()
    found = spark.read.parquet(str(tmp_path / "table")).collect()
    print(f"{len(found)} rows in {batches} batches, {mover.moves} moves")
    assert mover.moves >= 8
    check(cluster, load, [tuple(row) for row in found])
