"""Who a node is to other nodes, and the start of a node that is no super user."""

from __future__ import annotations

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.listener_security import CONTROLLER_MECHANISM, INTER_BROKER_MECHANISM
from barnabas.net.node_principals import check_super_users, own_principal
from barnabas.security.principal import ANONYMOUS, Principal
from tests.security.certificates import authority, node

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def login(module: str, options: str) -> str:
    return f"{module} required {options};"


SASL = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@h:9093,2@i:9093",
    "listeners": "OUT://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map": "OUT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "OUT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.out.scram-sha-256.sasl.jaas.config": login(SCRAM, 'username="broker" password="secret-1"'),
    "listener.name.out.plain.sasl.jaas.config": login(PLAIN, 'user_a="secret-2"'),
    "listener.name.controller.plain.sasl.jaas.config": login(PLAIN, 'username="node" password="secret-3"'),
}
ONLY_VOTER = {"process.roles": "controller", "listeners": "CONTROLLER://:9093", "controller.quorum.voters": "1@h:9093"}
BROKER = {"process.roles": "broker", "node.id": "3", "listeners": "OUT://:9092"}
OF_BROKERS = ("inter.broker.listener.name", "sasl.mechanism.inter.broker.protocol")


def config(given: dict[str, str] = SASL, **more: str) -> BrokerConfig:
    return BrokerConfig.from_properties({**given, **{name.replace("__", "."): text for name, text in more.items()}})


def test_the_user_of_plain_and_scram() -> None:
    assert own_principal(config(), "CONTROLLER", CONTROLLER_MECHANISM) == Principal("User", "node")
    assert own_principal(config(), "OUT", INTER_BROKER_MECHANISM) == Principal("User", "broker")


def test_a_token_says_nothing() -> None:
    name = "listener.name.out.scram-sha-256.sasl.jaas.config"
    token = login(SCRAM, 'username="token-id" password="secret" tokenauth="true"')
    assert own_principal(config({**SASL, name: token}), "OUT", INTER_BROKER_MECHANISM) is None
    nobody = {each: text for each, text in SASL.items() if each != name}
    assert own_principal(config(nobody), "OUT", INTER_BROKER_MECHANISM) is None, "the start ends where it is used"


def certified(**more: str) -> BrokerConfig:
    own = {
        "listener.security.protocol.map": "OUT:SSL,CONTROLLER:SSL",
        **node("CN=n1,O=Example").settings(),
        **authority().settings(),
    }
    return config({name: text for name, text in SASL.items() if "sasl" not in name} | own, **more)


def test_the_name_of_the_certificate() -> None:
    required = {"ssl__client__auth": "required"}
    asked = certified(**required)
    assert own_principal(asked, "OUT", INTER_BROKER_MECHANISM) == Principal("User", "CN=n1,O=Example")
    mapped = certified(**required, ssl__principal__mapping__rules="RULE:^CN=(.*?),.*$/$1/")
    assert own_principal(mapped, "CONTROLLER", CONTROLLER_MECHANISM) == Principal("User", "n1")
    unmapped = certified(**required, ssl__principal__mapping__rules="RULE:^OU=(.*?)$/$1/")
    assert own_principal(unmapped, "CONTROLLER", CONTROLLER_MECHANISM) is None
    assert own_principal(certified(), "OUT", INTER_BROKER_MECHANISM) == ANONYMOUS, "nobody asks for it"


def test_a_voter_that_is_no_super_user_does_not_start() -> None:
    with pytest.raises(CannotStart) as caught:
        check_super_users(config(), ["User:broker"])
    assert str(caught.value) == (
        "super.users does not name User:node, as whom this controller speaks to the other voters: they load the access control "
        "lists only after the quorum has formed. Add User:node to super.users of every node"
    )
    plain = {name: text for name, text in SASL.items() if "sasl" not in name}
    plain["listener.security.protocol.map"] = "OUT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    with pytest.raises(CannotStart, match="does not name User:ANONYMOUS, as whom"):
        check_super_users(config(plain), ["User:node"])


def test_a_broker_that_is_no_super_user_warns() -> None:
    assert check_super_users(config(), ["User:node"]) == [
        "This node speaks to brokers as User:broker, which super.users does not name: it needs access control lists that allow "
        "CLUSTER_ACTION on the cluster and DESCRIBE on every topic"
    ]
    warnings = check_super_users(config({**SASL, **BROKER}), [])
    assert [line.split(",")[0] for line in warnings] == [
        "This node speaks to controllers as User:node",
        "This node speaks to brokers as User:broker",
    ]
    assert check_super_users(config(), ["User:node", "User:broker"]) == []


def test_the_only_voter_dials_nobody() -> None:
    own = {name: text for name, text in SASL.items() if name not in OF_BROKERS and ".out." not in name}
    assert check_super_users(config({**own, **ONLY_VOTER}), []) == []
    assert check_super_users(config({"log.dirs": "/data"}), []) == []
