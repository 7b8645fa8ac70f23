"""The kinds of faults, ordered of something that notes them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from barnabas.embedded.cluster import Cluster
from barnabas.embedded.fault_fields import BadOrder
from barnabas.embedded.fault_orders import KINDS, order


class Noted:
    def __init__(self) -> None:
        self.called: list[Any] = []

    def __getattr__(self, method: str) -> Any:
        return lambda **arguments: self.called.append((method, arguments))


def ordered(given: object) -> Any:
    noted = Noted()
    order(noted, given)  # type: ignore[arg-type]
    return noted.called[0]


def test_every_kind_calls_a_method_that_takes_its_fields() -> None:
    for kind in KINDS.values():
        takes = inspect.signature(getattr(Cluster, kind.method)).parameters
        assert {kind.renamed.get(field.name, field.name) for field in kind.fields} <= takes.keys(), kind.method


def test_fields_become_arguments() -> None:
    fault = {
        "kind": "fail",
        "api": "Fetch",
        "error": "NOT_LEADER_OR_FOLLOWER",
        "times": None,
        "topic": "orders",
        "nth": 2,
    }
    assert ordered(fault) == ("fail", {name: value for name, value in fault.items() if name != "kind"})
    assert ordered({"kind": "cut", "from": 1, "to": [2, 3]}) == ("cut", {"source": 1, "target": [2, 3]})
    assert ordered({"kind": "delay", "between": [1, 2], "seconds": 1}) == ("delay", {"between": (1, 2), "seconds": 1})
    assert ordered({"kind": "clock", "seconds": -5, "nodes": [1]}) == ("move_clock", {"seconds": -5, "of": [1]})
    assert ordered({"kind": "delay_request", "seconds": 1}) == ("delay_request", {"api": None, "seconds": 1})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, 'a fault needs a JSON object with a kind: send {"kind": …} with one of fail, drop_response'),
        ({"api": "Fetch"}, "a fault needs a JSON object with a kind"),
        ({"kind": "drop_respons"}, "there is no fault of kind drop_respons; did you mean drop_response?"),
        ({"kind": ["fail"]}, "there is no fault of kind ['fail']: send one of fail, "),
        ({"kind": "cut", "from": 1}, "a fault cut needs the field to: whom it does not reach"),
        ({"kind": "cut", "from": 1, "to": 2, "topic": "x"}, "a fault cut has no field topic; it has from, to"),
    ],
)
def test_mistakes_are_sentences(given: object, sentence: str) -> None:
    with pytest.raises(BadOrder) as mistake:
        ordered(given)
    assert str(mistake.value).startswith(sentence)
