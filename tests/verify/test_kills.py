"""Kills under the whole workload, on barnabas and on Apache Kafka: no anomaly on either, with either protocol.

`BARNABAS_VERIFY_SECONDS` makes the runs longer.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apache_kafka
import pytest

from barnabas.verify.faults import LocalBroker
from barnabas.verify.run import Run, Settings

SECONDS = float(os.environ.get("BARNABAS_VERIFY_SECONDS", "30"))

pytestmark = [pytest.mark.conform, pytest.mark.timeout(240 + 2 * SECONDS)]


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
@pytest.mark.parametrize(("start", "kill_every_s"), [(barnabas, 4), (apache, 10)], ids=["barnabas", "apache-kafka"])
def test_no_anomaly_under_kills(start: object, kill_every_s: float, protocol: str, tmp_path: Path) -> None:
    assert callable(start)
    broker = start(tmp_path)
    broker.start()
    try:
        settings = Settings(broker.bootstrap, seconds=SECONDS, seed=7, protocol=protocol, kill_every_s=kill_every_s)
        verdict = Run(settings, tmp_path / "history.jsonl", broker)()
    finally:
        broker.stop()
    assert verdict.valid, [each.message for each in verdict.anomalies[:3]]
    assert verdict.statistics["kills"] >= 1
    assert verdict.statistics["operations"]["txn"]["ok"] > 10
    assert "stuck" not in verdict.statistics["operations"]
