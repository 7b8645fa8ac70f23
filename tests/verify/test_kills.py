"""The whole workload on barnabas under kills, and on Apache Kafka in peace: no anomaly on either, with either protocol.

Apache Kafka 4.3.1 is not killed, because it then loses a marker now and then (docs/verify.md says how). `BARNABAS_VERIFY_SECONDS` makes
the runs longer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import apache_kafka
import pytest

from barnabas.verify.faults import LocalBroker
from barnabas.verify.run import Run, Settings

SECONDS = float(os.environ.get("BARNABAS_VERIFY_SECONDS", "30"))

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600 + 8 * SECONDS)]


def barnabas(folder: Path) -> LocalBroker:
    address = f"127.0.0.1:{apache_kafka.free_port()}"
    command = [sys.executable, "-m", "barnabas.main", "start", "--data-dir", str(folder / "data"), "--listen", address]
    return LocalBroker([*command, "--set", "group.initial.rebalance.delay.ms=0"], address, folder / "broker.log")


def apache(folder: Path) -> LocalBroker:
    node = apache_kafka.ApacheKafka(folder)
    node.format()
    properties = str(folder / "server.properties")
    command = apache_kafka.java_command("kafka.Kafka", properties, heap="768m", log4j="server-log4j2.properties")
    return LocalBroker(command, node.bootstrap_servers, folder / "broker.log")


@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize(
    ("start", "kill_every_s"),
    [
        pytest.param(barnabas, 4, id="barnabas"),
        pytest.param(apache, 0, id="apache-kafka", marks=pytest.mark.long),
    ],
)
def test_no_anomaly(start: Callable[[Path], LocalBroker], kill_every_s: float, protocol: str, tmp_path: Path) -> None:
    broker = start(tmp_path)
    broker.start()
    try:
        # On a busy machine little happens in half a minute, and what happens in less than that proves nothing.
        for seconds in (SECONDS, 4 * SECONDS):
            settings = Settings(broker.bootstrap, seconds=seconds, seed=7, protocol=protocol, kill_every_s=kill_every_s)
            verdict = Run(settings, tmp_path / f"history-{seconds}.jsonl", broker)()
            assert verdict.valid, [each.message for each in verdict.anomalies[:3]]
            if verdict.statistics["operations"]["txn"]["ok"] > 10:
                break
    finally:
        broker.stop()
    assert bool(verdict.statistics["kills"]) is bool(kill_every_s)
    assert verdict.statistics["operations"]["txn"]["ok"] > 10
    assert "stuck" not in verdict.statistics["operations"]
