"""Fields of the HTTP API: what they take, and the sentence for what they do not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.embedded.fault_fields import BadOrder, Field, checked, from_query

FIELDS = (
    Field("name", "text", "its name", True),
    Field("count", "whole number", "how many"),
    Field("seconds", "number", "how long"),
    Field("nodes", "nodes", "the nodes"),
    Field("between", "pair", "two nodes, or one"),
    Field("times", "times", "how often; null for all"),
    Field("api", "api", "an API"),
    Field("config", "settings", "settings"),
)


def test_what_is_right_is_returned() -> None:
    given: dict[str, Any] = {
        "name": "orders", "count": 3, "seconds": 1, "nodes": [1, 2], "between": [1, 2], "times": None, "api": 0, "config": {"a": 1},
    }  # fmt: skip
    assert checked(given, FIELDS, "a topic") == {**given, "between": (1, 2)}
    assert checked({"name": "orders", "nodes": 1, "between": 2, "count": None}, FIELDS, "a topic") == {
        "name": "orders",
        "nodes": 1,
        "between": 2,
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], 'a topic needs a JSON object: send {"name": …}'),
        ({}, "a topic needs the field name: its name"),
        ({"nmae": "x"}, "a topic has no field nmae; did you mean name?"),
        (
            {"name": "x", "zzz": 1},
            "a topic has no field zzz; it has name, count, seconds, nodes, between, times, api, config",
        ),
        ({"name": 1}, "name is not a text: its name"),
        ({"name": "x", "count": True}, "count is not a whole number: how many"),
        ({"name": "x", "seconds": "1"}, "seconds is not a number: how long"),
        ({"name": "x", "nodes": ["1"]}, "nodes is not a node or a list of nodes: the nodes"),
        ({"name": "x", "between": [1, 2, 3]}, "between is not a node or a list of two: two nodes, or one"),
        ({"name": "x", "times": "all"}, "times is not a whole number or null: how often; null for all"),
        ({"name": "x", "config": 1}, "config is not a JSON object: settings"),
    ],
)
def test_what_is_wrong_is_a_sentence(given: object, sentence: str) -> None:
    with pytest.raises(BadOrder) as mistake:
        checked(given, FIELDS, "a topic")
    assert str(mistake.value) == sentence


def test_a_query_has_texts() -> None:
    assert from_query({"name": "1", "count": "2", "seconds": "0.5"}, FIELDS, "it") == {
        "name": "1",
        "count": 2,
        "seconds": 0.5,
    }
    with pytest.raises(BadOrder, match=r"^count=two is not a whole number: how many$"):
        from_query({"name": "1", "count": "two"}, FIELDS, "it")
    assert FIELDS[1].shown() == "whole number, optional: how many"
