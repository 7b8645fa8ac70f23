"""Settings by Kafka's name, with their types."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.config.setting_values import SettingValues


def values(*, embedded: bool = False, **properties: str) -> SettingValues:
    given = {name.replace("_", "."): text for name, text in properties.items()}
    return BrokerConfig.from_properties(given, embedded=embedded)


def test_a_value_is_the_given_one_or_the_default() -> None:
    assert values(num_partitions="3").value("num.partitions") == 3
    assert values().value("num.partitions") == 1
    with pytest.raises(KeyError):
        values().value("no.such.setting")


def test_an_embedded_broker_has_defaults_of_its_own() -> None:
    name = "group.streams.initial.rebalance.delay.ms"
    assert (values().int_value(name), values(embedded=True).int_value(name)) == (3000, 0)


def test_a_value_has_the_type_of_its_setting() -> None:
    made = values()
    assert made.int_value("num.io.threads") == 8
    assert made.str_value("security.inter.broker.protocol") == "PLAINTEXT"
    assert made.bool_value("controller.quorum.auto.join.enable") is False
    assert made.list_value("controller.listener.names") == ("CONTROLLER",)
    for ask in (made.int_value, made.bool_value, made.list_value):
        with pytest.raises(AssertionError, match=r"security\.inter\.broker\.protocol is not a"):
            ask("security.inter.broker.protocol")
    with pytest.raises(AssertionError, match=r"num\.io\.threads is not a string"):
        made.str_value("num.io.threads")
