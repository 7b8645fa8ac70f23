"""The metrics in a support bundle: where each node serves them, and how they are fetched."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli import support_metrics
from barnabas.cli.support_metrics import MetricsFetch, Place, metrics_url, places
from barnabas.client.admin import Admin, ClusterDescription, ConfigEntry, ConfigResource, ConfigSource, Node
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.cli.metrics_server import metrics_server

TOKEN = "0123456789abcdef"


class Brokers(Admin):
    """Brokers by host, each with the value of `barnabas.metrics.listen` and the names of other settings that are set."""

    def __init__(self, *brokers: tuple[str, Any, tuple[str, ...]]) -> None:
        self._brokers = brokers

    def describe_cluster(self) -> ClusterDescription:  # type: ignore[override]
        nodes = [Node(number, host, 9092) for number, (host, *_) in enumerate(self._brokers, 1)]
        return ClusterDescription("c", 1, nodes, [Node(99, "away", 9092)])

    def describe_configs(self, resources: Iterable[ConfigResource], **_: object) -> dict[ConfigResource, Any]:  # type: ignore[override]
        answers: dict[ConfigResource, Any] = {}
        for resource in resources:
            _, listen, others = self._brokers[int(resource.name) - 1]
            answers[resource] = listen
            if isinstance(listen, str):
                given = {"barnabas.metrics.listen": listen or None, **dict.fromkeys(others)}
                answers[resource] = [
                    ConfigEntry(name, value, ConfigSource.STATIC_BROKER_CONFIG, True, value is None, "string", [], None)
                    for name, value in given.items()
                ]
        return answers


def place_of(host: str, listen: object, *others: str) -> tuple[str, str]:
    found, fenced = places(Brokers((host, listen, others)))
    assert fenced == Place("metrics-99.txt", "", "the broker is fenced")
    assert found.name == "metrics-1.txt"
    return found.url, found.why


def test_a_setting_says_where_a_broker_serves() -> None:
    assert place_of("one.example", "0.0.0.0:9308") == ("http://one.example:9308/metrics", "")
    assert place_of("one.example", ":9308") == ("http://one.example:9308/metrics", "")
    assert place_of("2001:db8::1", "[::]:9308") == ("http://[2001:db8::1]:9308/metrics", "")
    assert place_of("one.example", "10.0.0.1:9308") == ("http://10.0.0.1:9308/metrics", "")
    assert place_of("localhost", "127.0.0.1:9308") == ("http://127.0.0.1:9308/metrics", "")
    tls = "https://one.example:9308/metrics"
    assert place_of("one.example", ":9308", "barnabas.metrics.ssl.keystore.location") == (tls, "")
    assert place_of("one.example", ":9308", "barnabas.metrics.ssl.keystore.key") == (tls, "")


def test_a_broker_that_cannot_be_asked_says_why() -> None:
    assert place_of("one.example", "") == (
        "",
        "the broker's settings name no barnabas.metrics.listen (pass --metrics URL)",
    )
    assert place_of("one.example", ":0") == ("", "the system chose the port (pass --metrics URL)")
    assert place_of("one.example", "127.0.0.1:9308") == (
        "",
        "served on the loopback interface of one.example (pass --metrics URL)",
    )
    denied = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not yours")
    assert place_of("one.example", denied) == ("", "not yours")


def test_an_address_on_the_command_line() -> None:
    assert metrics_url("http://one.example:9308") == "http://one.example:9308/metrics"
    assert metrics_url("https://one.example/") == "https://one.example/metrics"
    assert metrics_url("http://[::1]:9308/other") == "http://[::1]:9308/other"


@pytest.mark.parametrize(
    "text", ["one.example:9308", "ftp://one.example", "http://", "http://h:port", "http://[h", "http://u:hunter2@h"]
)
def test_a_wrong_address_is_rejected_without_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"must (be http|have no user)") as raised:
        metrics_url(text)
    assert "hunter2" not in str(raised.value)


def test_a_text_with_and_without_a_token() -> None:
    with metrics_server("up 1\n", token=TOKEN) as server:
        url = f"http://{server.address}/metrics"
        assert MetricsFetch({}, TOKEN).text(url) == "up 1\n"
        assert server.asked == [("/metrics", f"Bearer {TOKEN}")]
        with pytest.raises(OSError, match=r"answered with HTTP status 401 \(pass --metrics-token FILE\)"):
            MetricsFetch({}, "").text(url)
    assert repr(MetricsFetch({}, TOKEN)) == "<MetricsFetch with a token>"


def test_a_token_goes_to_no_other_machine_without_tls_and_follows_no_redirect() -> None:
    with pytest.raises(OSError, match="has no TLS, so the token was not sent there"):
        MetricsFetch({}, TOKEN).text("http://192.0.2.1:9308/metrics")
    with metrics_server("", status=302) as server:
        with pytest.raises(OSError, match="answered with HTTP status 302"):
            MetricsFetch({}, TOKEN).text(f"http://{server.address}/metrics")
        assert [path for path, _ in server.asked] == ["/metrics"]


def test_a_port_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(OSError, match=rf"http://{address}/metrics does not answer: connection refused"):
        MetricsFetch({}, "").text(f"http://{address}/metrics")
    monkeypatch.setattr(support_metrics, "TIMEOUT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(OSError, match=rf"http://127\.0\.0\.1:{port}/metrics does not answer: timed out"):
            MetricsFetch({}, "").text(f"http://127.0.0.1:{port}/metrics")


def test_a_text_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_metrics, "BYTES_MAX", 3)
    with metrics_server("1234") as server, pytest.raises(OSError, match="has more than 0 MiB"):
        MetricsFetch({}, "").text(f"http://{server.address}/metrics")


def test_https_trusts_the_authority_of_the_client(tmp_path: Path) -> None:
    authority = DevelopmentAuthority.create(1_790_000_000_000)
    issued = authority.issue("CN=node-1", hosts=["127.0.0.1"])
    store, trusted = tmp_path / "node.pem", tmp_path / "ca.pem"
    store.write_text(issued.key + issued.certificate)
    trusted.write_text(authority.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    with metrics_server("up 1\n", context=context) as server:
        url = f"https://{server.address}/metrics"
        properties = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        assert MetricsFetch(properties, TOKEN).text(url) == "up 1\n"
        with pytest.raises(OSError, match=r"does not answer: .*certificate verify failed"):
            MetricsFetch({}, TOKEN).text(url)
        with pytest.raises(OSError, match=r"ssl\.truststore\.location"):
            MetricsFetch({"ssl.truststore.type": "PEM", "ssl.truststore.location": "absent"}, "").text(url)
