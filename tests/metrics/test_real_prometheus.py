"""Real Prometheus over three nodes under load, one of which is killed: no query of a dashboard is empty, and the alarms ring."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.waiting import wait_for
from tests.metrics.prometheus import FOLDER
from tests.metrics.strimzi_names import STRIMZI_NAMES
from tests.metrics.watched_cluster import WatchedCluster

pytestmark = [
    pytest.mark.conform,
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="prometheus is not here (Debian: apt-get install prometheus)"
    ),
]

RANGE = "20s"
"""Takes the place of Grafana's range for rates; a scrape is taken twice a second."""
SECONDS = 90


def queries() -> list[str]:
    """Return every query of every panel, with all values of every variable."""
    found = []
    for path in sorted((FOLDER / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                text = target["expr"].replace("$__rate_interval", RANGE).replace("[24h]", "[1m]")
                found.append(re.sub(r'=~"\$\w+"', '=~".+"', text))
    assert len(found) > 80
    assert not any("$" in each for each in found)
    return found


def test_no_panel_is_empty_and_the_alarms_of_a_killed_node_ring(tmp_path: Path) -> None:
    with ExitStack() as stack:
        watched = WatchedCluster(tmp_path, stack)
        prometheus = watched.prometheus
        with watched.with_a_share_group():
            prometheus.until_all_have_data(queries(), SECONDS)
            selected = [f'{name}{{namespace="local",strimzi_io_cluster="shop"}}' for name in STRIMZI_NAMES]
            prometheus.until_all_have_data(selected, SECONDS)
        assert prometheus.query("a_name_that_nobody_serves") == []
        asked_of_others = prometheus.query("sum(kafka_server_raft_channel_metrics_request)")
        assert float(asked_of_others[0]["value"][1]) > 0
        assert not prometheus.firing() & {"BarnabasNodeDown", "BarnabasFencedBroker", "BarnabasUnderReplicated"}
        os.kill(watched.pid(3), signal.SIGKILL)
        expected = {"BarnabasNodeDown", "BarnabasFencedBroker", "BarnabasUnderReplicated", "BarnabasAtMinIsr"}
        wait_for("the alarms of a killed node", lambda: expected <= prometheus.firing(), SECONDS)
        assert "BarnabasOfflinePartitions" not in prometheus.firing()
        watched.end_query()
        wait_for("the alarm of a query", lambda: "BarnabasQueryEnded" in prometheus.firing(), SECONDS)
