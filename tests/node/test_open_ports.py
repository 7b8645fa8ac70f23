"""Ports that other machines reach: what protects them, and who starts without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.net.http_listener import HttpListener
from barnabas.net.listener import Listener
from barnabas.net.listener_security import ListenerSecurity
from barnabas.node import open_ports as module
from barnabas.node.open_ports import open_ports, refuse_open_ports, warn_of_open_ports
from tests.api.served_node import Serving

PLAIN = BrokerConfig.from_properties({})
INSECURE = BrokerConfig.from_properties({"barnabas.insecure": "true"})


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def config(**settings: str) -> BrokerConfig:
    own = {f"listener.name.out.{name.replace('_', '.')}": text for name, text in settings.items()}
    return BrokerConfig.from_properties(
        {"listeners": "OUT://:9100", "listener.security.protocol.map": "OUT:SSL", **own}, served=False
    )


def listener(loop: Any, host: str, bound: tuple[str, ...], protocol: str = "PLAINTEXT") -> Listener:
    security = None if protocol == "PLAINTEXT" else ListenerSecurity(protocol=protocol)
    made = Listener(loop, name="OUT", host=host, port=9100, security=security)
    made.bound_hosts = bound
    return made


@pytest.mark.parametrize(
    ("host", "bound", "said"),
    [
        ("127.0.0.1", ("127.0.0.1",), None),
        ("localhost", ("127.0.0.1", "::1"), None),
        ("0.0.0.0", ("0.0.0.0",), "every address of this machine, here as localhost:9100"),
        ("", ("0.0.0.0", "::"), "every address of this machine, here as localhost:9100"),
        ("192.168.1.5", ("192.168.1.5",), "the network, here as 192.168.1.5:9100"),
        ("fe80::1%eth0", ("fe80::1%eth0",), "the network, here as [fe80::1%eth0]:9100"),
        ("my-host", ("127.0.1.1", "10.0.0.1"), "the network, here as my-host:9100"),
    ],
)
def test_an_address_that_others_reach_is_named(loop: Any, host: str, bound: tuple[str, ...], said: str | None) -> None:
    found = open_ports(PLAIN, [listener(loop, host, bound)], None, has_authorizer=False)
    why = "without a login and an authorizer: anyone who reaches the port may read, write and delete"
    assert found == ([] if said is None else [f"listener OUT serves {said}, {why}"])


@pytest.mark.parametrize(
    ("protocol", "client_auth", "has_authorizer", "missing"),
    [
        ("SASL_PLAINTEXT", "none", True, ""),
        ("SASL_SSL", "none", True, ""),
        ("SSL", "required", True, ""),
        ("SSL", "requested", True, "without a login (SASL, or SSL with ssl.client.auth=required)"),
        ("SSL", "none", True, "without a login"),
        ("PLAINTEXT", "none", True, "without a login"),
        ("SASL_SSL", "none", False, "without an authorizer (authorizer.class.name)"),
        ("SSL", "required", False, "without an authorizer"),
        ("SSL", "none", False, "without a login and an authorizer"),
    ],
)
def test_a_listener_needs_both(loop: Any, protocol: str, client_auth: str, has_authorizer: bool, missing: str) -> None:
    made = listener(loop, "", ("0.0.0.0",), protocol)
    found = open_ports(config(ssl_client_auth=client_auth), [made], None, has_authorizer=has_authorizer)
    assert [missing in line for line in found] == ([True] if missing else [])


@pytest.mark.parametrize(
    ("token", "has_tls", "missing"),
    [
        ("", False, "without TLS and a bearer token (barnabas.metrics.ssl.keystore.location, barnabas.metrics.token"),
        ("/t", False, "without TLS ("),
        ("", True, "without a bearer token ("),
        ("/t", True, None),
    ],
)
def test_metrics_need_both(loop: Any, token: str, has_tls: bool, missing: str | None) -> None:
    over_tls: Any = str if has_tls else None
    http = HttpListener(loop, "10.0.0.1", 9308, {}, token_file=token, over_tls=over_tls)
    http.bound_hosts = ("10.0.0.1",)
    found = open_ports(PLAIN, [], http, has_authorizer=True)
    assert [f"/metrics serves the network, here as 10.0.0.1:9308, {missing}" in line for line in found] == (
        [] if missing is None else [True]
    )
    http.bound_hosts = ("127.0.0.1",)
    assert open_ports(PLAIN, [], http, has_authorizer=True) == []


def test_an_open_port_stops_the_start_unless_it_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    refuse_open_ports(PLAIN, [])
    refuse_open_ports(INSECURE, ["one", "two"])
    with pytest.raises(CannotStart) as caught:
        refuse_open_ports(PLAIN, ["one", "two"])
    assert str(caught.value) == (
        "one (add what is missing, or listen on 127.0.0.1; --insecure (barnabas.insecure=true) starts the node as it is)"
    )
    warn_of_open_ports(["one", "two"])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "One"),
        ("WARNING", "Two"),
    ]


def test_a_controllers_listener_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test binds the loopback interface and calls it something else: there may be no other."""
    asked: list[str] = []
    monkeypatch.setattr(module, "is_loopback", lambda host: asked.append(host) or len(asked) == 1)
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "node_id": "1"}
    with pytest.raises(CannotStart, match="listener CONTROLLER serves the network"):
        Serving(tmp_path, **settings)
    assert asked == ["127.0.0.1", "127.0.0.1"]
    assert not (tmp_path / "data").exists()


def test_a_node_that_may_be_insecure_warns(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(module, "is_loopback", lambda host: False)
    with barnabas.Broker(config={"barnabas.metrics.listen": "127.0.0.1:0", "barnabas.insecure": "true"}):
        pass
    warnings = [record.getMessage() for record in caplog.records if " serves the network" in record.getMessage()]
    assert [line.partition(" serves")[0] for line in warnings] == ["Listener PLAINTEXT", "/metrics"]
    with pytest.raises(CannotStart, match="listener PLAINTEXT serves the network"):
        barnabas.Broker().start()
