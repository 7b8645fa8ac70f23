"""What the broker's settings allow a group to set (KIP-848, KIP-932, KIP-1071)."""

from __future__ import annotations

import re

import pytest

from barnabas.config.config_table import config_schema
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigError
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.group_config_bounds import check_group_bounds


def check(values: dict[str, str], **static: str) -> None:
    properties = {name.replace("_", "."): value for name, value in static.items()}
    check_group_bounds(ConfigResolver(config_schema(), 1, properties, {}), ConfigurationsImage(), values)


def refusal(values: dict[str, str], **static: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check(values, **static)
    return str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"consumer.session.timeout.ms": "45000"},
        {"consumer.session.timeout.ms": "60000"},
        {"consumer.heartbeat.interval.ms": "15000"},
        {"share.session.timeout.ms": "45000", "share.heartbeat.interval.ms": "5000"},
        {"streams.num.standby.replicas": "2"},
        {"share.auto.offset.reset": "earliest"},
        {"streams.assignor.name": "sticky"},
    ],
)
def test_within_the_bounds(values: dict[str, str]) -> None:
    check(values)


@pytest.mark.parametrize("value", [44999, 60001])
def test_a_range_is_inclusive(value: int) -> None:
    expected = "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."
    assert refusal({"consumer.session.timeout.ms": str(value)}) == expected


def test_a_bound_may_be_one_sided() -> None:
    expected = "streams.num.standby.replicas must be less than or equal to 2"
    assert refusal({"streams.num.standby.replicas": "3"}) == expected
    low = refusal({"streams.task.offset.interval.ms": "1"})
    bound = re.fullmatch(r"streams\.task\.offset\.interval\.ms must be greater than or equal to (\d+)", low)
    assert bound is not None
    check({"streams.task.offset.interval.ms": bound[1]})
    assert refusal({"streams.task.offset.interval.ms": str(int(bound[1]) - 1)}) == low


def test_the_bounds_are_the_brokers_own_settings() -> None:
    check({"consumer.session.timeout.ms": "61000"}, group_consumer_max_session_timeout_ms="61000")


@pytest.mark.parametrize("family", ["consumer", "share", "streams"])
def test_a_session_is_longer_than_a_heartbeat(family: str) -> None:
    session, heartbeat = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
    static = {
        f"group_{family}_min_session_timeout_ms": "10",
        f"group_{family}_max_heartbeat_interval_ms": "50000",
        f"group_{family}_min_heartbeat_interval_ms": "5",
    }
    check({session: "11", heartbeat: "10"}, **static)
    expected = f"{session} must be greater than {heartbeat}"
    assert refusal({session: "10", heartbeat: "10"}, **static) == expected
    # The other one's default counts when only one is given.
    assert refusal({session: "5000"}, **static) == expected
    assert refusal({heartbeat: "45000"}, **static) == expected


def test_an_assignor_is_one_of_the_brokers() -> None:
    expected = "streams.assignor.name 'zzz' is not a registered task assignor. Registered assignors are: [sticky]."
    assert refusal({"streams.assignor.name": "zzz"}) == expected
    check({"streams.assignor.name": "zzz"}, group_streams_assignors="sticky,zzz")
