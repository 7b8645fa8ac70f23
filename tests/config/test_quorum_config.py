"""The quorum that settings name, and whether a node is alone in it."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.voters import Voter, VoterEndpoint

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({**BOTH, **{name.replace("_", "."): text for name, text in properties.items()}})


def test_the_voters_of_a_static_quorum() -> None:
    made = config(controller_quorum_voters="3@c:9093, 1@localhost:9093,2@[::1]:9094")
    assert made.quorum_voters == (
        Voter(1, ZERO_UUID, (VoterEndpoint("CONTROLLER", "localhost", 9093),)),
        Voter(2, ZERO_UUID, (VoterEndpoint("CONTROLLER", "::1", 9094),)),
        Voter(3, ZERO_UUID, (VoterEndpoint("CONTROLLER", "c", 9093),)),
    )
    assert made.quorum_bootstrap_servers == ()


def test_a_voters_endpoint_has_the_name_of_the_first_controller_listener() -> None:
    made = config(
        controller_quorum_voters="1@h:9093",
        controller_listener_names="Quorum,CONTROLLER",
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093,QUORUM://:9094",
    )
    assert made.quorum_voters[0].endpoints == (VoterEndpoint("QUORUM", "h", 9093),)


def test_bootstrap_servers() -> None:
    made = config(controller_quorum_bootstrap_servers="a:9093,[fe80::1]:9094")
    assert made.quorum_bootstrap_servers == (("a", 9093), ("fe80::1", 9094))
    assert made.quorum_voters == ()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "voters",
            "foo",
            "controller.quorum.voters=foo: must be ID@HOST:PORT, as in 1@localhost:9093,2@localhost:9094",
        ),
        ("voters", "x@b:9", "must be ID@HOST:PORT"),
        ("voters", "1@b", "must be ID@HOST:PORT"),
        ("voters", "1@:9093", "must be ID@HOST:PORT"),
        ("voters", "1@b:99999", "must be ID@HOST:PORT"),
        ("voters", "-1@b:9", "must be ID@HOST:PORT"),
        ("voters", "²@b:9", "must be ID@HOST:PORT"),
        ("voters", "2147483648@b:9", "must be ID@HOST:PORT"),
        ("voters", "1" * 5000 + "@b:9", "must be ID@HOST:PORT"),
        ("voters", "1@b:9093,1@c:9093", "controller.quorum.voters names node 1 twice"),
        ("voters", "1@0.0.0.0:9093", "nobody can dial 0.0.0.0"),
        (
            "bootstrap.servers",
            "foo",
            "controller.quorum.bootstrap.servers=foo: must be HOST:PORT, as in localhost:9093",
        ),
        ("bootstrap.servers", "1@foo:9", "must be HOST:PORT"),
        ("bootstrap.servers", "foo:-1", "must be HOST:PORT"),
    ],
)
def test_what_is_no_address_is_named(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({**BOTH, f"controller.quorum.{name}": text})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, True),
        ({"controller_quorum_voters": "1@anywhere:9093"}, True),
        ({"controller_quorum_voters": "1@a:9093,2@b:9093"}, False),
        # A static quorum needs no bootstrap servers: they do not decide.
        ({"controller_quorum_voters": "1@a:9093", "controller_quorum_bootstrap_servers": "b:9093"}, True),
        ({"controller_quorum_bootstrap_servers": "localhost:9093"}, True),
        ({"controller_quorum_bootstrap_servers": "127.0.0.1:9093,[::1]:9093"}, True),
        ({"controller_quorum_bootstrap_servers": "localhost:9094"}, False),
        ({"controller_quorum_bootstrap_servers": "localhost:9093,b:9093"}, False),
        ({"controller_quorum_bootstrap_servers": "kafka.internal:9093"}, False),
        (
            {
                "controller_quorum_bootstrap_servers": "kafka.internal:9093",
                "advertised_listeners": "PLAINTEXT://kafka.internal:9092",
            },
            True,
        ),
        (
            {
                "controller_quorum_bootstrap_servers": "kafka.internal:19093",
                "advertised_listeners": "PLAINTEXT://h:9092,CONTROLLER://kafka.internal:19093",
            },
            True,
        ),
        (
            {
                "controller_quorum_bootstrap_servers": "localhost:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://10.0.0.7:9093",
            },
            False,
        ),
        (
            {
                "controller_quorum_bootstrap_servers": "10.0.0.7:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://10.0.0.7:9093",
            },
            True,
        ),
    ],
)
def test_a_node_is_alone_if_no_other_is_named(properties: dict[str, str], expected: bool) -> None:
    assert config(**properties).is_alone is expected
