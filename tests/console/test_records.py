"""Records for people and for programs."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.console.records import (
    CELL_CHARACTERS,
    decoded,
    details_of,
    header_text,
    object_of,
    sequence_of,
    shown_text,
    time_text,
    whole_object,
)
from barnabas.console.search.fetched import Found, State
from barnabas.console.search.query import Query
from barnabas.decoding.decoded import Decoded
from barnabas.decoding.decoder import SHOWN_BYTES, Decoder
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import read_header

QUERY = Query("orders", key_as="text", value_as="json")


def found_in(batch: bytearray, place: int = 0) -> Found:
    return Found(2, list(iter_records(batch))[place], read_header(batch), State.COMMITTED)


def one(key: bytes | None, value: bytes | None, headers: Any = ()) -> Found:
    return found_in(build_batch([(1_700_000_000_000, key, value, headers)], base_offset=9))


def test_the_fields_are_those_of_the_command_with_more_behind() -> None:
    found = object_of(one(b"k", b'{"a": 1}', [("h", b"x")]), QUERY, Decoder())
    assert list(found)[:7] == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert (found["value"], found["value_format"], found["value_data"]) == ('{"a": 1}', "json", {"a": 1})
    assert "value_note" not in found
    bad = object_of(one(b"k", b"\xff"), QUERY, Decoder())
    assert (bad["value_base64"], bad["value_format"]) == ("/w==", "hex")
    assert "it is not JSON" in str(bad["value_note"])


def test_a_large_value_is_cut_and_says_its_size() -> None:
    large = one(b"k", "€".encode() * 100_000)
    found = object_of(large, QUERY, Decoder())
    assert (found["value_bytes"], len(str(found["value"]))) == (300_000, SHOWN_BYTES // 3)
    assert len(str(whole_object(large, QUERY)["value"])) == 100_000


def test_what_the_batch_says() -> None:
    records = [(5, b"k", b"v", ())] * 3
    batch = build_batch(
        records, base_offset=40, producer_id=7, producer_epoch=2, base_sequence=2**31 - 2, transactional=True, compression=Compression.LZ4,
        leader_epoch=6,
    )  # fmt: skip
    assert details_of(found_in(batch, 1)) == {
        "state": "committed", "transactional": True, "producer_id": 7, "epoch": 2, "sequence": 2**31 - 1, "codec": "lz4", "leader_epoch": 6,
    }  # fmt: skip
    assert sequence_of(found_in(batch, 2)) == 0
    assert details_of(one(b"k", b"v"))["producer_id"] is None


def test_a_marker_says_what_it_is() -> None:
    batch = build_end_transaction_marker(
        commit=False, coordinator_epoch=3, producer_id=7, producer_epoch=0, timestamp=5
    )
    key, value = decoded(found_in(batch), QUERY, Decoder())
    assert (key.text, value.text) == ("control record: abort", "000000000003")


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Decoded("null", None, "", None), "null"),
        (Decoded("text", "", "a\n\x1b[31m\u202e", 5), "a\\n\\x1b[31m\\u202e"),
        (Decoded("text", "", "x" * 600, 600), "x" * CELL_CHARACTERS + "… (600 bytes)"),
        (Decoded("text", "", "x", 70_000, is_cut=True), "x… (70000 bytes)"),
    ],
)
def test_a_cell(part: Decoded, shown: str) -> None:
    assert shown_text(part) == shown


def test_headers_and_times() -> None:
    assert header_text([("a", b"1"), ("b", None), ("c\n", b"\xff")]) == "a=1, b=null, c\\n=/w=="
    assert header_text([]) == "-"
    assert len(header_text([("a", b"x" * 10_000)])) == CELL_CHARACTERS + 1
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(2**62) == f"{2**62} ms"
    assert Record(0, 2**62, None, None, []).timestamp == 2**62
