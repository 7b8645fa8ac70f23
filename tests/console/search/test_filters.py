"""Which records pass."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.console.search.fetched import Found, State
from barnabas.console.search.filters import Filters
from barnabas.console.search.query import Query
from barnabas.decoding.decoder import Decoder
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import Record
from barnabas.records.record_batch import read_header

PLAIN = read_header(bytes(build_batch([(0, b"k", b"v", ())])))
MARKER = read_header(
    bytes(build_end_transaction_marker(commit=True, coordinator_epoch=0, producer_id=1, producer_epoch=0, timestamp=0))
)


def record(**fields: Any) -> Found:
    state = fields.pop("state", State.COMMITTED)
    batch = fields.pop("batch", PLAIN)
    return Found(
        3,
        Record(**({"offset": 5, "timestamp": 1_000, "key": b"k", "value": b'{"n": 1}', "headers": []} | fields)),
        batch,
        state,
    )


def filters(**fields: Any) -> Filters:
    query = Query("t", **({"value_as": "json", "key_as": "text"} | fields))
    return Filters(query, Decoder(), 0)


@pytest.mark.parametrize(
    ("query", "found", "wanted"),
    [
        ({}, record(), True),
        ({"key": "k"}, record(), True),
        ({"key": "x"}, record(), False),
        ({"key": "k"}, record(key=None), False),
        ({"header": "h"}, record(headers=[("h", b"1")]), True),
        ({"header": "h:1:2"}, record(headers=[("h", b"0"), ("h", b"1:2")]), True),
        ({"header": "h:"}, record(headers=[("h", b"1")]), False),
        ({"header": "h:"}, record(headers=[("h", b"")]), True),
        ({"header": "h"}, record(), False),
        ({"since": "0000000001000"}, record(), True),
        ({"since": "0000000001001"}, record(), False),
        ({"until": "0000000001000"}, record(), False),
        ({"filter": "value.n == 1 && partition == 3"}, record(), True),
        ({"filter": "value == null"}, record(value=None), True),
        ({"filter": "headers.h == '1'"}, record(headers=[("h", b"0"), ("h", b"1")]), True),
        ({"filter": "headers.h == b'\\xff'"}, record(headers=[("h", b"\xff")]), True),
        ({}, record(state=State.ABORTED), False),
        ({"isolation_level": "read_uncommitted"}, record(state=State.ABORTED), True),
        ({"filter": "state == 'aborted'", "isolation_level": "read_uncommitted"}, record(state=State.ABORTED), True),
        ({}, record(batch=MARKER), False),
        ({"control": True, "key": "x"}, record(batch=MARKER), True),
        ({"control": True, "until": "0000000001000"}, record(batch=MARKER), False),
    ],
)
def test_what_passes(query: dict[str, Any], found: Found, wanted: bool) -> None:
    assert filters(**query).passes(found) is wanted


def test_what_is_hidden_and_not_judged_is_counted() -> None:
    asked = filters(filter="value.n == 1")
    assert not asked.passes(record(state=State.ABORTED))
    assert not asked.passes(record(value=b"{"))
    assert not asked.passes(record(value=b"\xff" * 5, offset=9))
    assert (asked.hidden, asked.unjudged) == (1, {"value": 2, "key": 0, "": 0})
    assert asked.why["value"].startswith("partition 3, offset 5: the value: it is not JSON")
    field = filters(filter="partition == 3 && value.n == 1", value_as="text")
    assert not field.passes(record())
    assert not field.passes(record(value=None))
    assert field.unjudged["value"] == 1
    text = filters(filter="value.startsWith('a')", value_as="text")
    assert not text.passes(record(value=b"a" * 100_000))
    assert text.why["value"].endswith("the value has 100000 bytes, which are too many")
