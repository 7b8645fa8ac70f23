"""The tables of `barnabas top`: filtered, sorted by values, and a sentence in the place of what is not known."""

from __future__ import annotations

import pytest

from barnabas.cli.output import Found, Table, found_rows
from barnabas.client.errors import BrokerNotAvailable
from barnabas.console.look import Look, TopicTotals
from barnabas.console.top_tables import TABS, header, shown
from barnabas.protocol.errors import ErrorCode, error_for
from tests.console.test_look import made_up

BY_KEY = {each.key: each for each in TABS}
SUMMARY = Table(("HEALTHY", "BROKERS"), [(True, 1)], vertical=True)
NODES = found_rows(("NODE", "STATE"), [(1, "serving"), (2, "silent")])
NOTHING = found_rows(("TOPIC",), [])


def seen(at_s: float = 4, **topics: TopicTotals) -> Look:
    """Return a look at a healthy cluster."""
    health = Found({"healthy": True, "problems": []}, [SUMMARY])
    return made_up(at_s, **topics)._replace(health=health, nodes=NODES, held_back=NOTHING)


def gone() -> Look:
    error = BrokerNotAvailable("cannot reach here:9092")
    return Look(9, 0, error, error, error, error, error)


LOOK = seen(orders=TopicTotals(1, 5, 1_500), payments=TopicTotals(9, 5, 20), **{"[red]x[/]": TopicTotals(10, 5, 999)})


def first_column(key: str, containing: str = "", by: int | None = None) -> list[str]:
    made = shown(BY_KEY[key], LOOK, None, containing, by).grid
    return [] if made is None else [row[0].text for row in made.rows]


def test_the_order_is_that_of_the_overview() -> None:
    assert first_column("topics") == ["orders", "[red]x[/]", "payments"]
    assert first_column("groups") == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        (0, ["[red]x[/]", "orders", "payments"]),
        (1, ["[red]x[/]", "payments", "orders"]),
        (2, ["orders", "[red]x[/]", "payments"]),
        (4, ["[red]x[/]", "orders", "payments"]),
    ],
)
def test_numbers_are_sorted_as_numbers(by: int, order: list[str]) -> None:
    assert first_column("topics", by=by) == order


def test_unknown_values_are_last() -> None:
    now = seen(a=TopicTotals(1, None, 9), b=TopicTotals(1, 8, 1))
    before = seen(0, a=TopicTotals(1, None, 9), b=TopicTotals(1, 4, 1))
    made = shown(BY_KEY["topics"], now, before, by=3).grid
    assert made is not None
    assert [(row[0].text, row[3].text) for row in made.rows] == [("b", "1.0"), ("a", "-")]


def test_the_filter() -> None:
    assert first_column("topics", "ord") == ["orders"]
    assert first_column("nodes", "sil") == ["2"]
    assert shown(BY_KEY["topics"], LOOK, None, "absent").sentence == "No topic with this text in its name."
    assert shown(BY_KEY["nodes"], LOOK, None, "absent").sentence == "No row has this text."


def test_what_is_empty_or_not_known_is_a_sentence() -> None:
    assert shown(BY_KEY["health"], LOOK, None).sentence == "Nothing is wrong."
    assert shown(BY_KEY["held_back"], LOOK, None).sentence == "No transaction holds readers back."
    refused = LOOK._replace(topics=error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    sentence = shown(BY_KEY["topics"], refused, None).sentence
    assert sentence is not None
    assert "authoriz" in sentence.lower()


def test_problems() -> None:
    table = Table(("PROBLEM", "COUNT"), [("a broker is fenced", 1)])
    problems = Found({"problems": [{"problem": "a broker is fenced", "where": ["1"]}]}, [SUMMARY, table])
    made = shown(BY_KEY["health"], LOOK._replace(health=problems), None, by=1).grid
    assert made is not None
    assert [cell.text for cell in made.rows[0]] == ["a broker is fenced", "1"]


def test_the_header() -> None:
    first, health, volume = header("here", LOOK, None).splitlines()
    assert (first, health) == ("here", "HEALTHY true  BROKERS 1")
    assert volume.startswith("TOPICS 3  PARTITIONS 20  SIZE 2.52 kB  RECORDS/S -")
    assert header("here", gone(), None).startswith("here: Cannot reach here:9092")
