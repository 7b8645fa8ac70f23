"""A node's place among others: its roles, whether it is alone."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({**BOTH, **{name.replace("_", "."): text for name, text in properties.items()}})


def test_a_node_without_any_of_these_settings_is_alone() -> None:
    made = BrokerConfig.from_properties({})
    assert (made.is_alone, made.is_broker, made.is_controller) == (True, True, True)
    lone_server = {"controller.quorum.bootstrap.servers": "localhost:9093"}
    assert BrokerConfig.from_properties(lone_server).is_alone


@pytest.mark.parametrize(
    ("role", "listener", "is_broker"),
    [("broker", "PLAINTEXT://:9092", True), ("controller", "CONTROLLER://:9093", False)],
)
def test_a_node_with_one_role_is_never_alone(role: str, listener: str, is_broker: bool) -> None:
    made = config(process_roles=role, listeners=listener, controller_quorum_bootstrap_servers="localhost:9093")
    assert (made.is_alone, made.is_broker, made.is_controller) == (False, is_broker, not is_broker)
