"""Rates from two looks, and what is shown of them."""

from __future__ import annotations

import barnabas
from barnabas.cli.output import Found
from barnabas.client.admin import Admin
from barnabas.client.errors import BrokerNotAvailable
from barnabas.console.group_lags import GroupLag
from barnabas.console.look import (
    Look,
    TopicTotals,
    growth_rate,
    largest_topics,
    latest_groups,
    look,
    rate_of,
    rates_found,
    records_rate,
)
from barnabas.protocol.errors import ErrorCode, error_for

EMPTY = Found([], [])


def made_up(at_s: float, **topics: TopicTotals) -> Look:
    groups = {name: GroupLag(name, "Stable", "classic", 1, lag) for name, lag in (("b", 2), ("a", 2), ("c", 7))}
    return Look(at_s, 0, EMPTY, EMPTY, topics, groups, EMPTY)


BEFORE = made_up(10, a=TopicTotals(1, 100, 5), b=TopicTotals(2, 50, 9), c=TopicTotals(1, None, 1))
NOW = made_up(14, a=TopicTotals(1, 140, 5), b=TopicTotals(2, 10, 9), c=TopicTotals(1, 5, 1), d=TopicTotals(1, 1, 0))


def test_rates() -> None:
    assert [rate_of(name, NOW, BEFORE) for name in "abcd"] == [10.0, 0.0, None, None]
    assert rate_of("a", NOW, None) is None
    found = rates_found(NOW, BEFORE)
    assert isinstance(found, Found)
    assert found.data == {"topics": 4, "partitions": 5, "size_bytes": 15, "records_per_sec": 10.0, "window_s": 4}


def test_rates_of_the_cluster() -> None:
    assert (records_rate(NOW, BEFORE), records_rate(NOW, None)) == (10.0, None)
    grown = NOW._replace(topics={"a": TopicTotals(1, 0, 45), "b": TopicTotals(1, 0, 1), "e": TopicTotals(1, 0, 99)})
    # b shrank, and e is new: how much of it came since the look before is not known.
    assert (growth_rate(grown, BEFORE), growth_rate(grown, None), growth_rate(grown, grown)) == (10.0, None, None)


def test_the_largest_and_the_latest() -> None:
    topics, groups = largest_topics(NOW, BEFORE), latest_groups(NOW)
    assert isinstance(topics, Found)
    assert isinstance(groups, Found)
    assert [each["name"] for each in topics.data] == ["b", "a", "c", "d"]
    assert [(each["group"], each["total_lag"]) for each in groups.data] == [("c", 7), ("a", 2), ("b", 2)]


def test_a_part_that_failed_stays_an_error() -> None:
    error = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    failed = NOW._replace(topics=error, groups=error)
    assert [rates_found(failed, NOW), largest_topics(failed, NOW), latest_groups(failed)] == [error] * 3
    assert rate_of("a", failed, NOW) is None


def test_a_look_at_a_cluster(broker: barnabas.Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        found = look(admin, 1.0, 2)
    assert isinstance(found.topics, dict)
    assert (found.topics["orders"].partitions, found.topics["orders"].end) == (2, 6)
    assert found.silence is None


def test_a_cluster_that_does_not_answer() -> None:
    with Admin("127.0.0.1:1", timeout_ms=500) as admin:
        assert isinstance(look(admin, 1.0, 2).silence, BrokerNotAvailable)
