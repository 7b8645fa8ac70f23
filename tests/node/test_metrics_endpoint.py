"""The HTTP port of the metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.node.metrics_endpoint import MetricsEndpoint
from tests.api.served_node import Serving
from tests.metrics.monitored import Monitored, value


def test_metrics_are_off_unless_asked_for(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    assert node.node.metrics is None
    node.close()


@pytest.mark.parametrize("address", ["127.0.0.1", ":http", "127.0.0.1:65536"])
def test_an_address_that_is_not_host_and_port_is_rejected(tmp_path: Path, address: str) -> None:
    with pytest.raises(CannotStart, match=f"barnabas.metrics.listen {address}: must be HOST:PORT"):
        Serving(tmp_path, barnabas_metrics_listen=address)


@pytest.mark.parametrize(
    ("host", "expected"), [("", "localhost"), ("0.0.0.0", "localhost"), ("::1", "[::1]"), ("a.example", "a.example")]
)
def test_the_address_in_the_log_can_be_dialled(host: str, expected: str) -> None:
    made = MetricsEndpoint(asyncio.new_event_loop(), host, 9308, lambda: "")
    made.http.loop.close()
    assert made.url == f"http://{expected}:9308/metrics"


def test_open_connections_are_counted_by_listener(tmp_path: Path) -> None:
    node = Monitored(tmp_path)
    assert value(node.samples(), "kafka_server_socket_server_metrics_connection_count", listener="PLAINTEXT") == 0
    node.close()


def test_share_groups_are_read_only_if_they_are_there(tmp_path: Path) -> None:
    node = Monitored(tmp_path)
    acquired = ("barnabas_sharegroup_records_acquired_total", ())
    assert acquired not in node.samples()
    assert node.server.services.share.partitions is not None
    assert node.samples()[acquired] == 0
    node.close()
