"""Listeners: names, hosts, ports and security protocols."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError, Listener
from barnabas.config.endpoints import endpoints, parse_port


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_listeners() -> None:
    made = config(
        listeners="PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093,INSIDE://[::1]:9094",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        advertised_listeners="PLAINTEXT://example.org:9092",
    )
    assert made.listeners == (Listener("PLAINTEXT", "127.0.0.1", 0), Listener("INSIDE", "::1", 9094))
    assert made.controller_listeners == (Listener("CONTROLLER", "", 9093),)
    assert made.advertised_listeners == (Listener("PLAINTEXT", "example.org", 9092),)
    assert config(advertised_listeners="auto").advertised_listeners is None


def test_the_map_of_protocols_may_have_spaces_and_small_letters() -> None:
    values = {
        "listener.security.protocol.map": "in : plaintext , OUT:sasl_ssl",
        "controller.listener.names": ("CONTROLLER",),
        "listeners": ("IN://:1", "out://h:2"),
        "advertised.listeners": None,
    }
    found = endpoints(values.__getitem__)  # type: ignore[arg-type]
    assert found["listeners"] == (Listener("IN", "", 1, "PLAINTEXT"), Listener("OUT", "h", 2, "SASL_SSL"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("localhost:9092", "use NAME://host:port"),
        ("PLAINTEXT:FOO", "use NAME://host:port"),
        ("PLAINTEXT://h:99999", "use NAME://host:port"),
        ("NOPE://h:1", "listener NOPE has no security protocol"),
        ("PLAINTEXT://h:1,PLAINTEXT://h:2", "twice"),
    ],
)
@pytest.mark.parametrize("name", ["listeners", "advertised.listeners"])
def test_a_bad_listener_is_one_line_that_names_the_setting(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({name: text})
    assert words in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "use NAME:PROTOCOL"),
        (":PLAINTEXT", "use NAME:PROTOCOL"),
        ("PLAINTEXT:PLAINTEXT,CONTROLLER", "use NAME:PROTOCOL"),
        ("", "use NAME:PROTOCOL"),
        ("PLAINTEXT:", "PLAINTEXT has the protocol , which is not one of PLAINTEXT, SSL,"),
        ("PLAINTEXT:TLS", "PLAINTEXT has the protocol TLS, which is not one of PLAINTEXT, SSL,"),
        ("INSIDE:PLAINTEXT", "listener PLAINTEXT has no security protocol; add PLAINTEXT:PLAINTEXT to"),
    ],
)
@pytest.mark.parametrize("quorum", [{}, {"process.roles": "broker", "controller.quorum.voters": "2@h:9093"}])
def test_a_wrong_map_of_protocols_is_one_line_that_names_the_setting(
    text: str, words: str, quorum: dict[str, str]
) -> None:
    given = {"listeners": "PLAINTEXT://:9092", "listener.security.protocol.map": text, **quorum}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert words in str(caught.value)
    assert "listener.security.protocol.map" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "port"),
    [("0", 0), ("9092", 9092), ("009092", 9092), ("65535", 65535), ("-1", None)]
    + [(text, None) for text in ("65536", "", "-", "--1", "+1", "1_0", " 1", "²", "٣", "x", "9" * 5000)],
)
def test_ports(text: str, port: int | None) -> None:
    assert parse_port(text) == port


def test_a_node_has_a_listener() -> None:
    with pytest.raises(ConfigError, match=r"^listeners is empty: name one"):
        config(listeners="")


def test_a_listener_may_have_port_minus_one_and_no_other_below_zero() -> None:
    assert parse_port("-1", lowest=-1) == -1
    for address in ("PLAINTEXT://h:-2", "PLAINTEXT://h:--1", "PLAINTEXT://h:²"):
        with pytest.raises(ConfigError, match="use NAME://host:port"):
            config(listeners=address)
