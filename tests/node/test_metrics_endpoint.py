"""The HTTP port of the metrics."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.node.metrics_endpoint import MetricsEndpoint
from barnabas.security.dev_certificates import DevelopmentAuthority
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
    made = MetricsEndpoint(asyncio.new_event_loop(), host, 9308, lambda: "", {})
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


@pytest.mark.parametrize(
    ("setting", "text", "why"),
    [
        ("barnabas_metrics_token_file", "/no/such", "barnabas.metrics.token.file: /no/such: no such file or directory"),
        ("barnabas_metrics_ssl_enabled_protocols", "TLSv1.3", "barnabas.metrics.ssl.keystore.location: is missing"),
        (
            "barnabas_metrics_ssl_keystore_location",
            "/no/such",
            "barnabas.metrics.ssl.keystore.location: cannot read /no/such",
        ),
    ],
)
def test_protection_that_cannot_be_given_stops_the_start(tmp_path: Path, setting: str, text: str, why: str) -> None:
    with pytest.raises(CannotStart, match=why):
        Serving(
            tmp_path, barnabas_metrics_listen="127.0.0.1:0", barnabas_metrics_ssl_keystore_type="PEM", **{setting: text}
        )


def test_metrics_over_tls_need_the_token_and_health_does_not(tmp_path: Path) -> None:
    """Python's own HTTP client stands for Prometheus."""
    authority = DevelopmentAuthority.create(int(time.time() * 1000))
    issued = authority.issue("CN=node", hosts=["127.0.0.1"])
    (tmp_path / "ca.pem").write_text(authority.certificate)
    settings = {f"barnabas.metrics.{name}".replace(".", "_"): text for name, text in issued.settings().items()}
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    node = Monitored(tmp_path, barnabas_metrics_token_file=str(token), **settings)
    assert node.node.metrics is not None
    url = node.node.metrics.url
    assert url.startswith("https://127.0.0.1:")
    trust = ssl.create_default_context(cafile=tmp_path / "ca.pem")

    def get(path: str, shown: str | None = None) -> tuple[int, str | None]:
        head = {} if shown is None else {"Authorization": shown}
        request = urllib.request.Request(url.replace("/metrics", path), headers=head)
        try:
            with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
                return answer.status, None
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers["WWW-Authenticate"]

    def ask(*arguments: str) -> tuple[int, str | None]:
        return node.loop.run_until_complete(node.loop.run_in_executor(None, get, *arguments))

    assert ask("/metrics", "Bearer 0123456789abcdef0123456789abcdef")[0] == 200
    assert ask("/metrics", "Bearer 0123456789abcdef0123456789abcdeX") == (401, "Bearer")
    assert ask("/metrics", "Basic 0123456789abcdef0123456789abcdef") == (401, "Bearer")
    assert ask("/metrics") == (401, "Bearer")
    assert ask("/healthz")[0] == ask("/readyz")[0] == 200
    token.write_text("another-token-of-32-characters--")
    assert ask("/metrics", "bearer another-token-of-32-characters--")[0] == 200
    token.unlink()
    assert ask("/metrics", "Bearer another-token-of-32-characters--")[0] == 401
    node.close()
