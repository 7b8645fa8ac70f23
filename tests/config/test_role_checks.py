"""What contradicts the roles of a node is rejected; the reasons are those of Apache Kafka 4.3."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "2@a:9093",
    "listeners": "PLAINTEXT://:9092",
}
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093,2@b:9093",
    "listeners": "CONTROLLER://:9093",
}
BOTH = {**CONTROLLER, "process.roles": "broker,controller", "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}
ALONE = {**BOTH, "controller.quorum.voters": "1@localhost:9093"}
MAP = "listener.security.protocol.map"
INSIDE = {MAP: "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "listeners": "INSIDE://:9092"}


def accepted(given: dict[str, str], changes: dict[str, str | None]) -> BrokerConfig:
    merged = {**given, **changes}
    return BrokerConfig.from_properties({name: text for name, text in merged.items() if text is not None})


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        (BROKER, {}),
        (BROKER, {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "a:9093"}),
        (BROKER, {"advertised.listeners": "PLAINTEXT://h:1,CONTROLLER://h:9093"}),
        (BROKER, {"controller.listener.names": "CONTROLLER,OTHER"}),
        (BROKER, {**INSIDE, "inter.broker.listener.name": "inside"}),
        (BROKER, {MAP: INSIDE[MAP], "listeners": "PLAINTEXT://127.0.0.1:9092,INSIDE://[::1]:9092"}),
        (BROKER, {MAP: INSIDE[MAP], "listeners": "PLAINTEXT://:0,INSIDE://:0"}),
        (BROKER, {"node.id": None, "broker.id": "1"}),
        (CONTROLLER, {}),
        (CONTROLLER, {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "localhost:9093"}),
        (CONTROLLER, {"advertised.listeners": "CONTROLLER://h:1"}),
        (CONTROLLER, {"advertised.listeners": "PLAINTEXT://h:1"}),
        (BOTH, {}),
        (BOTH, {"advertised.listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093"}),
        (BOTH, {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "a:9093,b:9093"}),
        (ALONE, {"controller.listener.names": None, "node.id": None}),
        # What a node alone can do without, although Apache Kafka asks for it.
        (ALONE, {"controller.quorum.voters": None}),
        (ALONE, {"listeners": "PLAINTEXT://:9092"}),
        (ALONE, {**INSIDE, "listeners": "INSIDE://:9092,CONTROLLER://:9093"}),
    ],
)
def test_what_goes_together(given: dict[str, str], changes: dict[str, str | None]) -> None:
    assert accepted(given, changes).without_effect == ()


@pytest.mark.parametrize(
    ("given", "changes", "words"),
    [
        (BROKER, {"process.roles": ""}, "process.roles is empty: set it to broker, controller or broker,controller"),
        (BROKER, {"process.roles": None}, "voters names other nodes, but process.roles is not set: set it to broker,"),
        (
            BROKER,
            {"node.id": None},
            "node.id is not set: each node of a cluster has a number of its own, as in node.id=1",
        ),
        (
            BROKER,
            {"broker.id": "2"},
            "node.id=1 and broker.id=2 differ: they are two names of one setting; remove broker",
        ),
        (
            BROKER,
            {"controller.listener.names": None},
            "controller.listener.names is not set: it names the listener of the",
        ),
        (
            BROKER,
            {"controller.quorum.voters": None},
            "process.roles=broker needs the addresses of the controllers: set",
        ),
        (
            CONTROLLER,
            {"controller.quorum.voters": None},
            "process.roles=controller needs the addresses of the controllers",
        ),
        (
            BROKER,
            {"controller.quorum.voters": "1@a:9093"},
            "names node 1, which is this one, but process.roles=broker ma",
        ),
        (
            CONTROLLER,
            {"controller.quorum.voters": "2@a:9093,3@b:9093"},
            "names the nodes 2, 3, but not this controller",
        ),
        (BOTH, {"node.id": "4"}, "voters names the nodes 1, 2, but not this controller, which has node.id=4"),
        (BROKER, {"controller.quorum.auto.join.enable": "true"}, "is for controllers, not for process.roles=broker"),
        (
            BROKER,
            {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
            "CONTROLLER in listeners is a listener of controllers",
        ),
        (BROKER, {"listeners": "INSIDE://:9092"}, "listener INSIDE has no security protocol"),
        (
            BROKER,
            {MAP: "PLAINTEXT:PLAINTEXT"},
            "no entry for the controllers' listener CONTROLLER; add CONTROLLER:PLAINTE",
        ),
        (
            BROKER,
            {MAP: "PLAINTEXT:PLAIN"},
            "PLAINTEXT has the protocol PLAIN, which is not one of PLAINTEXT, SSL, SASL_PL",
        ),
        (
            BROKER,
            {"inter.broker.listener.name": "CONTROLLER"},
            "=CONTROLLER is not a listener that this broker advertises",
        ),
        (
            BROKER,
            {"inter.broker.listener.name": "INSIDE"},
            "is not a listener that this broker advertises: PLAINTEXT; name",
        ),
        (
            BROKER,
            INSIDE,
            "inter.broker.listener.name is PLAINTEXT by default, which is not a listener that this broker adv",
        ),
        (
            BROKER,
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "set one of inter.broker.listener.name and security.inter.broker.protocol, not both",
        ),
        (
            BROKER,
            {MAP: INSIDE[MAP], "listeners": "PLAINTEXT://a:9092,INSIDE://b:9092"},
            "the listeners PLAINTEXT and INSIDE have the same port 9092; give each its own",
        ),
        (
            BROKER,
            {MAP: INSIDE[MAP], "listeners": "PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.2:9092"},
            "have the same port 9092",
        ),
        (BROKER, {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners: nobody can dial 0.0.0.0"),
        (
            BROKER,
            {"advertised.listeners": "PLAINTEXT://h:1,SSL://h:2"},
            "advertised.listeners names SSL, which is not one",
        ),
        (
            CONTROLLER,
            {"listeners": "PLAINTEXT://:9092"},
            "listeners has PLAINTEXT, but process.roles=controller listens",
        ),
        (
            CONTROLLER,
            {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"},
            "leave only the listeners of controller.liste",
        ),
        (CONTROLLER, {"inter.broker.listener.name": "CONTROLLER"}, "is a listener of controllers; remove the setting"),
        (CONTROLLER, {MAP: "PLAINTEXT:PLAINTEXT"}, "has no entry for the controllers' listener CONTROLLER"),
        (
            CONTROLLER,
            {"controller.listener.names": "CONTROLLER,EXTRA"},
            "names EXTRA, which is not one of the listeners; ",
        ),
        (
            BOTH,
            {"listeners": "PLAINTEXT://:9092"},
            "controller.listener.names names CONTROLLER, which is not one of the",
        ),
        (ALONE, {"controller.listener.names": "CONTROLLER,EXTRA"}, "names EXTRA, which is not one of the listeners"),
        (
            ALONE,
            {"listeners": "CONTROLLER://:9093"},
            "listeners has no listener for clients: all are in controller.liste",
        ),
        (
            ALONE,
            {"advertised.listeners": "CONTROLLER://h:9093"},
            "advertised.listeners has no listener for clients: all",
        ),
    ],
)
def test_what_contradicts_itself_is_one_line(given: dict[str, str], changes: dict[str, str | None], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        accepted(given, changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_embedded_broker_is_a_cluster_of_its_own() -> None:
    with pytest.raises(ConfigError, match="an embedded broker is a cluster of its own"):
        BrokerConfig.from_properties(BROKER, embedded=True)
    assert BrokerConfig.from_properties(ALONE, embedded=True).is_alone
