"""The listeners that serve before the access control lists are loaded."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.early_start import early_start_listeners

NODE = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names": "CONTROLLER"}


@pytest.mark.parametrize(
    ("given", "early"),
    [
        ({}, {"CONTROLLER"}),
        ({"early.start.listeners": ""}, set()),
        ({"early.start.listeners": "PLAINTEXT"}, {"PLAINTEXT"}),
        ({"early.start.listeners": " PLAINTEXT , CONTROLLER,"}, {"PLAINTEXT", "CONTROLLER"}),
    ],
)
def test_names(given: dict[str, str], early: set[str]) -> None:
    assert early_start_listeners(BrokerConfig.from_properties({**NODE, **given})) == early


@pytest.mark.parametrize("name", ["OTHER", "controller"])
def test_a_name_of_no_listener_stops_the_start(name: str) -> None:
    """As in Kafka, whose names of listeners are in capitals here."""
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({**NODE, "early.start.listeners": name})
    assert str(caught.value) == (
        f"early.start.listeners contains listener {name}, but this is not contained in listeners or controller.listener.names; "
        "this node has PLAINTEXT, CONTROLLER"
    )
