"""`kill -9` of the real process in a loop, under load from an idempotent librdkafka producer.

After every kill the broker starts again on the same directory and the producer, which never stops, must get further before the next kill.
At the end every acknowledged record is there once, in the order it was sent; so is every other record that is there at all.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import BarnabasProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(5400)]

KILLS = int(os.environ.get("BARNABAS_KILLS", "100"))
FEW = 30
"""So often in `make conform`: a kill costs two seconds."""
PARTITIONS = 3
PROGRESS_PER_LIFE = 200
PATIENCE_SECONDS = 240


class Load:
    """An idempotent producer in a thread: numbered values to each partition in turn, and which of them were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1, "batch.size": 16_384,
            "message.timeout.ms": 600_000, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20, "log_level": 0, "socket.keepalive.enable": True, "queue.buffering.max.messages": 20_000,
        })  # fmt: skip
        self.acknowledged: list[tuple[int, int, int]] = []  # partition, number, offset
        self.failures: list[str] = []
        self.sent = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append((message.partition(), int(message.value()), message.offset()))

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.producer.produce(
                    "load", str(self.sent), partition=self.sent % PARTITIONS, on_delivery=self.delivered
                )
                self.sent += 1
            except BufferError:
                self.producer.poll(0.01)
            if not self.sent % 50:
                self.producer.poll(0.002)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            self.thread.join()

    def wait_for(self, acknowledged: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.acknowledged) < acknowledged:
            assert time.monotonic() < deadline, f"no progress past {len(self.acknowledged)}; {self.failures[:3]}"
            time.sleep(0.002)


def read_all(bootstrap: str) -> dict[int, list[tuple[int, int]]]:
    """Every record of each partition, as (offset, number)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for partition in range(PARTITIONS):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False})
        _, end = consumer.get_watermark_offsets(TopicPartition("load", partition), PATIENCE_SECONDS)
        consumer.assign([TopicPartition("load", partition, 0)])
        rows: list[tuple[int, int]] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not rows or rows[-1][0] < end - 1:
            rows += [(m.offset(), int(m.value())) for m in consumer.consume(10_000, 1) if not m.error()]
            assert time.monotonic() < deadline, f"partition {partition} stops at {rows[-1:]} of {end}"
        consumer.close()
        found[partition] = rows
    return found


@pytest.mark.parametrize("kills", [FEW, pytest.param(KILLS, marks=pytest.mark.long)])
def test_kills_lose_double_and_reorder_nothing(kills: int, tmp_path: Path) -> None:
    rng = random.Random(3)
    broker = BarnabasProcess(tmp_path)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("load", PARTITIONS, 1, config={"segment.bytes": "1048576"})])["load"].result(30)
        load = Load(broker.bootstrap_servers)
        with load.running():
            for _ in range(kills):
                load.wait_for(len(load.acknowledged) + PROGRESS_PER_LIFE)
                time.sleep(rng.random() * 0.1)
                broker.kill()
                broker.start()
            load.wait_for(len(load.acknowledged) + PROGRESS_PER_LIFE)
        assert load.producer.flush(PATIENCE_SECONDS) == 0
        logs = read_all(broker.bootstrap_servers)
    finally:
        broker.stop()
    assert not load.failures
    for partition, rows in logs.items():
        numbers = [number for _, number in rows]
        assert numbers == sorted(set(numbers)), f"partition {partition}: doubled or out of order"
        assert [offset for offset, _ in rows] == list(range(len(rows)))
    there = {(partition, number, offset) for partition, rows in logs.items() for offset, number in rows}
    lost = [row for row in load.acknowledged if row not in there and row[2] >= 0]
    assert not lost, f"{len(lost)} acknowledged records are not where they were said to be: {lost[:5]}"
    assert {(p, n) for p, n, _ in load.acknowledged} == {(p, n) for p, n, _ in there}
    print(f"{kills} kills, {len(load.acknowledged)} acknowledged records, none lost, doubled or out of order")
