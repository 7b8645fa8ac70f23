"""No request holds the loop for long: every array of every API, full of the shortest elements.

Work is counted, not timed: a turn's calls, of Python's functions and of built-in ones, are the same on every machine. 350,000 calls take
about 50 ms. All is one 128th of what it stands for, so that the test is short: 8 KB for 1 MB, and what a turn may cost. What grows with the
request is found as surely as with 1 MB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from barnabas.api import APIS
from barnabas.protocol.api_keys import ApiKey
from barnabas.turns import TURN
from tests.api.long_requests import LongArray, arrays
from tests.api.longest_turns import MEGABYTE, PARTITIONS, MeasuredNode
from tests.api.turn_meter import counted_calls
from tests.short_turns import set_turn

SCALE = 256
CALLS_MAX = 350_000 // SCALE
"""In one turn; a call and its return are two readings of the meter."""

LIMITS = ("ELEMENTS_MAX", "MAX_RECORDS_PER_REQUEST", "MISSING_TOPICS_MAX")
"""How many elements are allowed: scaled too, wherever they are."""

CALLS_ONCE_MAX = 35_000
"""In a turn whose work does not grow with the request."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    made = MeasuredNode(tmp_path_factory.mktemp("measured"), PARTITIONS // SCALE)
    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in list(sys.modules.items()) if name.startswith("barnabas.")]:
            for name in LIMITS:
                if hasattr(module, name):
                    patch.setattr(module, name, getattr(module, name) // SCALE)
        set_turn(patch, TURN // SCALE)
        yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in APIS if arrays(key)], ids=lambda key: ApiKey(key).name)
def test_no_turn_is_long(node: MeasuredNode, key: int) -> None:
    for of in arrays(key):
        for shape in of.shapes:
            calls = calls_of(node, of, shape, 1)
            if calls > CALLS_MAX:
                growth = calls_of(node, of, shape, 2) - calls
                assert growth <= CALLS_MAX, f"{of.name} ({shape}): {growth * SCALE} calls in one turn for each megabyte"
                assert calls <= CALLS_ONCE_MAX, f"{of.name} ({shape}): {calls} calls in one turn"


def calls_of(node: MeasuredNode, of: LongArray, shape: str, times: int) -> int:
    """Return the calls of the longest turn."""
    body = node.body(of, shape, times * MEGABYTE // SCALE)
    with counted_calls() as meter:
        return node.measure(of.key, of.version, body, meter).longest // 2
