"""The arguments of a cluster: each mistake is one sentence."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.embedded.cluster_arguments import (
    CLUSTER_DEFAULTS,
    checked_brokers,
    cluster_settings,
    ordered_pairs,
)


def test_the_defaults_are_settings() -> None:
    assert not BrokerConfig.from_properties({**CLUSTER_DEFAULTS, "log.dirs": "/"}).unknown


def test_own_settings_win() -> None:
    settings = cluster_settings({"num.partitions": 4, "broker.session.timeout.ms": 9000})
    assert settings == {**CLUSTER_DEFAULTS, "num.partitions": "4", "broker.session.timeout.ms": "9000"}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"node.id": 4}, "node.id is not a setting of a cluster: each node has its own"),
        ({"listeners": "PLAINTEXT://:9092"}, "listeners is not a setting of a cluster: each node has its own"),
        ({"num.partition": 4}, "num.partition is not a setting of the broker; did you mean num.partitions?"),
        ({"num.partitions": "many"}, "num.partitions"),
    ],
)
def test_settings_that_are_not_valid(config: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cluster_settings(config)
    assert str(caught.value).startswith(text)


def test_the_number_of_brokers() -> None:
    assert checked_brokers(5) == 5
    with pytest.raises(ValueError, match="brokers=0: pass 1 to 99"):
        checked_brokers(0)
    with pytest.raises(TypeError, match="brokers='3' is not a number"):
        checked_brokers("3")  # type: ignore[arg-type]


def test_a_node_has_no_way_to_itself() -> None:
    assert ordered_pairs({1, 2}, {2, 3}) == {(1, 2), (1, 3), (2, 3)}
