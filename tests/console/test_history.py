"""The hour is bounded, and its gaps stay gaps."""

from __future__ import annotations

from barnabas.client.errors import BrokerNotAvailable
from barnabas.console.chart import Point
from barnabas.console.history import MOST_LOOKS, MOST_NAMES, History
from barnabas.console.look import Look, TopicTotals
from barnabas.protocol.errors import ErrorCode, error_for
from tests.console.test_look import made_up


def at(at_s: float, end: int) -> Look:
    return made_up(at_s, orders=TopicTotals(1, end, end * 10))._replace(time_ms=int(at_s * 1000))


def silent(at_s: float) -> Look:
    gone = BrokerNotAvailable("gone")
    return Look(at_s, int(at_s * 1000), gone, gone, gone, gone, gone)


def filled(*looks: Look) -> History:
    history, previous = History(), None
    for each in looks:
        history.add(each, previous, 15)
        previous = each
    return history


def test_the_figures_of_looks() -> None:
    history = filled(at(0, 0), at(5, 10), at(10, 10))
    assert history.records_per_sec() == [Point(0, None, True), Point(5000, 2.0), Point(10_000, 0.0)]
    assert [each.value for each in history.bytes_per_sec()] == [None, 20.0, 0.0]
    assert [each.value for each in history.total_lag()] == [11, 11, 11]
    assert [each.value for each in history.topic_rate("orders")] == [None, 2.0, 0.0]
    assert [each.value for each in history.group_lag("c")] == [7, 7, 7]
    assert [each.value for each in history.group_lag("absent")] == [None] * 3


def test_where_nobody_watched_a_line_begins_and_no_rate_spans_it() -> None:
    history = filled(at(0, 0), at(5, 10), at(100, 1000), at(105, 1010))
    assert [each.value for each in history.records_per_sec()] == [None, 2.0, None, 2.0]
    assert [each.begins for each in history.total_lag()] == [True, False, True, False]


def test_a_cluster_without_an_answer_is_a_gap() -> None:
    history = filled(at(0, 0), at(5, 10), silent(10), at(15, 30), at(20, 40))
    assert [each.value for each in history.records_per_sec()] == [None, 2.0, None, None, 2.0]
    assert [each.value for each in history.total_lag()] == [11, 11, None, 11, 11]


def test_a_part_without_an_answer_is_a_gap_of_its_own() -> None:
    refused = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    history = filled(at(0, 0), at(5, 10)._replace(groups=refused), at(10, 20)._replace(topics=refused))
    assert [each.value for each in history.records_per_sec()] == [None, 2.0, None]
    assert [each.value for each in history.total_lag()] == [11, None, 11]


def test_it_has_an_hour_and_no_more() -> None:
    assert len(filled(*(at(5.0 * number, 0) for number in range(2000)))) == MOST_LOOKS
    assert len(filled(*(at(60.0 * number, 0) for number in range(100)))) == 61
    assert len(filled(*(at(number, 0) for number in range(2000)))) == MOST_LOOKS


def test_of_many_topics_the_busiest_are_kept() -> None:
    names = [f"t{number:03}" for number in range(3 * MOST_NAMES)]
    before = made_up(0, **{name: TopicTotals(1, 0, 0) for name in names})
    now = made_up(5, **{name: TopicTotals(1, 5 * number, 0) for number, name in enumerate(names)})
    history = filled(before, now)
    kept = [name for name in names if history.topic_rate(name)[1].value is not None]
    assert kept == names[-MOST_NAMES:]
