"""No request holds the loop for long: every array of every API, full of the shortest elements.

Work is counted, not timed: a turn's calls, of Python's functions and of built-in ones, are the same on every machine. 320,000 calls take
about 50 ms. All is one 64th of what it stands for, so that the test is short: 16 KB for 1 MB, and the constants that say how many elements
a turn handles. What grows with the request is found as surely as with 1 MB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from barnabas.api import APIS, dispatch
from barnabas.protocol.api_keys import ApiKey
from tests.api.long_requests import arrays
from tests.api.longest_turns import MEGABYTE, PARTITIONS, MeasuredNode
from tests.api.turn_meter import counted_calls

SCALE = 64
CALLS_MAX = 320_000 // SCALE
"""In one turn; a call and its return are two readings of the meter."""

KNOWN = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.DELETE_RECORDS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)
"""APIs that hold the loop longer."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    made = MeasuredNode(tmp_path_factory.mktemp("measured"), PARTITIONS // SCALE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "LONG_ARRAYS", dispatch.LONG_ARRAYS // SCALE)
        for name, module in list(sys.modules.items()):
            if name.startswith("barnabas.") and hasattr(module, "PIECE"):
                patch.setattr(module, "PIECE", module.PIECE // SCALE)
        yield made
    made.close()


@pytest.mark.parametrize("key", [key for key in APIS if arrays(key)], ids=lambda key: ApiKey(key).name)
def test_no_turn_is_long(node: MeasuredNode, key: int) -> None:
    found = {}
    for of in arrays(key):
        for shape in of.shapes:
            body = node.body(of, shape, MEGABYTE // SCALE)
            with counted_calls() as meter:
                turns = node.measure(key, of.version, body, meter)
            if turns.longest // 2 > CALLS_MAX:
                found[f"{of.name} {shape}"] = turns.longest // 2 * SCALE
    assert bool(found) == (key in KNOWN), found
