"""Which listener brokers use among themselves."""

from __future__ import annotations

from barnabas.config.config import BrokerConfig
from barnabas.config.inter_broker_listener import InterBrokerListener
from barnabas.metadata.cluster_image import BrokerRegistration, Endpoint

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "2@a:9093",
    "listeners": "PLAINTEXT://:9092,INSIDE://:9094",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
PLAINTEXT, INSIDE = Endpoint("PLAINTEXT", "one", 9092, 0), Endpoint("INSIDE", "two", 9094, 0)
SECURE = Endpoint("SECURE", "three", 9095, 1)


def listener(**properties: str) -> InterBrokerListener:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties({**BROKER, **named}).inter_broker_listener


def found(wanted: InterBrokerListener, *listeners: Endpoint) -> Endpoint | None:
    return wanted.of_broker(BrokerRegistration(2, 5, b"i" * 16, listeners, {}, None, False, False, ()))


def test_it_is_named_or_has_the_name_of_the_protocol() -> None:
    assert listener() == ("PLAINTEXT", False)
    assert listener(security_inter_broker_protocol="PLAINTEXT") == ("PLAINTEXT", False)
    assert listener(inter_broker_listener_name="inside") == ("INSIDE", True)
    assert BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092"}).inter_broker_listener.name == "PLAINTEXT"


def test_another_broker_is_reached_at_the_listener_of_that_name() -> None:
    assert found(listener(), INSIDE, PLAINTEXT) == PLAINTEXT
    assert found(listener(inter_broker_listener_name="INSIDE"), PLAINTEXT, INSIDE) == INSIDE
    assert found(listener(inter_broker_listener_name="INSIDE"), PLAINTEXT) is None


def test_no_other_listener_takes_its_place() -> None:
    """One without protection least of all."""
    assert found(listener(), SECURE, INSIDE) is None
    protected = {**BROKER, "listeners": "SSL://:9092", "security.inter.broker.protocol": "SSL"}
    del protected["listener.security.protocol.map"]
    protected["listener.security.protocol.map"] = "SSL:SSL,CONTROLLER:PLAINTEXT"
    certified = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "node.pem"}
    wanted = BrokerConfig.from_properties({**protected, **certified}).inter_broker_listener
    assert wanted == ("SSL", False)
    assert found(wanted, PLAINTEXT, INSIDE) is None
