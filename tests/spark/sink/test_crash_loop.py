"""A query fails of the user's bug again and again, while another producer writes into the same topic.

A reader of committed records gets those of the other producer within seconds. Tasks that learn of the failure end their
transactions themselves; those of workers that are killed the driver ends, and looks twice (`test_stream_abort`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.spark import start
from tests.spark.session import SPARK, Topics

pytestmark = [*SPARK, pytest.mark.long]

SECONDS = 30.0
"""After which a record of the other producer must be visible. A transaction that nobody ends lasts fifteen minutes."""


class OtherProducer:
    """Writes one record after the other, each when a reader of committed records has got the one before.

    Attributes:
        longest: how many seconds a record took.
        count: how many were written and read.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.longest, self.count = 0.0, 0
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed", "fetch.wait.max.ms": 50}
        )  # fmt: skip
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._ends = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()
            self._consumer.close()

    def _work(self) -> None:
        while not self._ends.wait(0.02) and self.longest < SECONDS:
            began = time.monotonic()
            value = f"other-{self.count}".encode()
            self._producer.produce(self._topic, value)
            assert self._producer.flush(60) == 0
            # A record that is not there in time counts with what it took until then.
            while not self._is_there(value) and time.monotonic() - began < SECONDS:
                pass
            self.longest = max(self.longest, time.monotonic() - began)
            self.count += 1

    def _is_there(self, value: bytes) -> bool:
        found = self._consumer.poll(0.2)
        return found is not None and found.error() is None and found.value() == value

    def await_more(self, count: int) -> None:
        """Wait until so many more records are written and read, or one is late."""
        wanted, deadline = self.count + count, time.monotonic() + 6 * SECONDS
        while self.count < wanted and self.longest < SECONDS:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def fails(servers: str, failed: Path, how: str) -> Callable[[Any], Iterator[Any]]:
    """Return the user's function: task 1 fails, before or after task 0's transaction is open. Task 0 ends when Spark gives it up.

    If its workers are killed, by SIGKILL, task 0 does not end its transaction.
    """

    def rows(batches: Any) -> Iterator[Any]:
        import os
        import signal
        import time

        import pyarrow
        from pyspark import TaskContext

        from barnabas.client.cluster import Cluster
        from barnabas.client.transactions import list_transactions

        def until(happened: Callable[[], object]) -> None:
            deadline = time.monotonic() + 60
            while not happened():
                assert time.monotonic() < deadline
                time.sleep(0.005)

        def kill_other_workers() -> None:
            for process in filter(str.isdecimal, os.listdir("/proc")):
                try:
                    with open(f"/proc/{process}/stat") as file:
                        parent = int(file.read().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                if parent == os.getppid() and int(process) != os.getpid():
                    os.kill(int(process), signal.SIGKILL)

        list(batches)
        if TaskContext.get().partitionId() == 1:  # type: ignore[union-attr]
            if how != "it-fails-first":
                with Cluster(servers) as cluster:
                    until(lambda: list_transactions(cluster, states=["Ongoing"]))
            if how == "its-workers-are-killed":
                kill_other_workers()
            failed.touch()
            raise ValueError("a bug in the user's code")
        if how == "it-fails-first":
            until(failed.exists)
        for _ in range(200):
            yield pyarrow.record_batch({"value": pyarrow.array([bytes(1000)] * 1000, pyarrow.binary())})

    return rows


@pytest.mark.parametrize("how", ["it-fails-later", "it-fails-first", "its-workers-are-killed"])
def test_the_others_records_are_visible(spark: Any, topics: Topics, tmp_path: Path, how: str) -> None:
    target = topics.create()
    spark.range(2).repartition(2).write.parquet(str(tmp_path / "input"))
    other = OtherProducer(topics.servers, target)
    with other.at_work():
        for attempt in range(3):
            function = fails(topics.servers, tmp_path / f"failed-{attempt}", how)
            writer = (
                spark.readStream.schema("id long")
                .parquet(str(tmp_path / "input"))
                .repartition(2)
                .mapInArrow(function, "value binary")
                .writeStream.format("barnabas")
                .option("kafka.bootstrap.servers", topics.servers)
                .options(topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
            )
            with pytest.raises(Exception, match=r"a bug in the user's code|Python worker exited"):
                start(writer).awaitTermination()
            other.await_more(10)
    assert other.longest < SECONDS
    assert other.count >= 30
