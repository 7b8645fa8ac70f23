"""What an expression may ask about a record."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from barnabas.decoding.decoder import Decoder
from barnabas.decoding.expression import VARIABLES, Expression, Unjudged
from barnabas.decoding.record_variables import RecordVariables, UndecodedRecord

HEADERS = [("h", b"0"), ("h", b"1"), ("raw", b"\xff"), ("none", None)]
RECORD = UndecodedRecord("orders", 2, 77, 1_700_000_000_000, b"eu-17", b'{"n": 1}', HEADERS)


def test_each_variable() -> None:
    variables = RecordVariables(Decoder(), "text", "json")
    assert {name: variables.of(RECORD, name) for name in VARIABLES} == {
        "value": {"n": 1},
        "key": "eu-17",
        "headers": {"h": "1", "raw": b"\xff", "none": None},
        "topic": "orders",
        "partition": 2,
        "offset": 77,
        "timestamp": 1_700_000_000_000,
        "time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "state": "committed",
    }
    assert Expression('value.n == 1 && key.startsWith("eu")').holds(lambda name: variables.of(RECORD, name))


def test_what_a_producer_may_write() -> None:
    variables = RecordVariables(Decoder(), "text", "json")
    nothing = RECORD._replace(key=None, value=None, timestamp=-(2**63), headers=())
    assert [variables.of(nothing, each) for each in ("key", "value", "time", "headers")] == [None, None, None, {}]
    with pytest.raises(Unjudged, match="the value: it is not JSON"):
        variables.of(RECORD._replace(value=b"{"), "value")
    with pytest.raises(Unjudged, match="the key: it is not UTF-8"):
        variables.of(RECORD._replace(key=b"\xff"), "key")
    with pytest.raises(Unjudged, match="the key has 100000 bytes, which are too many"):
        variables.of(RECORD._replace(key=b"a" * 100_000), "key")


@pytest.mark.parametrize(
    ("key_as", "value_as", "topic", "wanted"),
    [("text", "json", "orders", {"key"}), ("json", "", "orders", {"value"}), ("", "", "__consumer_offsets", set())],
)
def test_which_parts_have_no_fields(key_as: str, value_as: str, topic: str, wanted: set[str]) -> None:
    assert RecordVariables(Decoder(), key_as, value_as).undecoded(topic) == wanted
