"""The service of delayed delivery is killed by SIGKILL again and again, on both brokers, and each record is delivered once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.client.admin import Admin, NewTopic
from tests.conform.brokers import await_leaders, broker
from tests.retries.records import committed, values

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

RECORDS = 300
LONGEST_WAIT_MS = 20_000
KILLS = 8
PATIENCE_SECONDS = 240


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["barnabas", "apache-kafka"])
def test_each_record_is_delivered_once_though_the_service_is_killed(kind: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    replicas = dict.fromkeys(("transaction.state.log.replication.factor", "offsets.topic.replication.factor"), "1")
    settings = {**replicas, "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0"}
    with broker(kind, tmp_path, settings) as running:
        bootstrap = running.bootstrap_servers
        topics = {"orders.delayed": 2, "orders": 2}
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()])
        await_leaders(bootstrap, topics)
        began_ms = time.time_ns() // 1_000_000
        due_ms = {str(number): began_ms + chance.randrange(LONGEST_WAIT_MS) for number in range(RECORDS)}
        producer = Producer({"bootstrap.servers": bootstrap})
        for value, due in due_ms.items():
            producer.produce("orders.delayed", value, value, headers=[("deliver-at", str(due).encode())])
        assert producer.flush(30) == 0

        command = [
            sys.executable,
            "-m",
            "barnabas.main",
            "deliver",
            "orders.delayed",
            "--to",
            "orders",
            "-b",
            bootstrap,
        ]
        # A static member is known again at once, and ends the open transaction of the killed one.
        command += ["-X", "group.instance.id=one", "-X", "session.timeout.ms=45000"]
        for _ in range(KILLS):
            process = subprocess.Popen(command)
            try:
                process.wait(1 + 3 * chance.random())
                raise AssertionError(f"the service has ended: {process.returncode}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        last = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(found := committed(bootstrap, "orders", 2)) < RECORDS:
                assert last.poll() is None
                assert time.monotonic() < deadline, f"{len(found)} of {RECORDS} are delivered"
                time.sleep(0.5)
        finally:
            last.kill()
            last.wait()
        found = committed(bootstrap, "orders", 2)
        assert Counter(values(found)) == Counter(due_ms.keys())
        assert all(each.timestamp_ms >= due_ms[(each.value or b"").decode()] for each in found), "one came early"
