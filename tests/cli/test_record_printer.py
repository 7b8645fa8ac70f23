"""`consume --format`: each verb, and JSON that says the same as the line of a record."""

from __future__ import annotations

import pytest
from confluent_kafka import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.record_format import Shown, to_json
from barnabas.cli.record_printer import printer
from tests.cli.test_record_format import RECORD


def message(record: Shown) -> Message:
    """Return a record as the library delivers it."""
    topic, partition, offset, timestamp, key, value, headers, epoch = record
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=list(headers) or None,
        timestamp=(1, timestamp) if timestamp >= 0 else (0, 0),
        leader_epoch=epoch,
    )


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("%t %p %o\\n", b"t 3 47\n"),
        ("%k=%s", b"k\xff=value"),
        ("%v|%V|%S|%K", b"value|5|5|2"),
        ("%h %H", b"a=1,b=NULL 2"),
        ("%T %d %e", b"1733000000123 1733000000123 5"),
        ("%T{iso}", b"2024-11-30T20:53:20.123Z"),
        ("%k{hex} %v{base64}", b"6bff dmFsdWU="),
        ("%R%v", b"\0\0\0\5value"),
        ("100%% \\x41\\t\\\\{}", b"100% A\t\\{}"),
        ("%v\\n", b"value\n"),
        ("100%%%v%%", b"100%value%"),
        ("", b""),
    ],
)
def test_prints(template: str, printed: bytes) -> None:
    assert printer(template)([message(RECORD)]) == printed
    assert printer(template)([message(RECORD)] * 3) == printed * 3


def test_null_prints_nothing_and_has_length_minus_one() -> None:
    empty = RECORD._replace(key=None, value=None, headers=[])
    assert printer("[%k|%s|%K|%S|%h|%k{hex}]")([message(empty)]) == b"[||-1|-1||]"
    assert printer("%R")([message(empty)]) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("template", ["%q", "%", "a\\", "\\q", "%k{iso}", "%t{hex}", "\\x4"])
def test_formats_that_are_none(template: str) -> None:
    with pytest.raises(ValueError):
        printer(template)


optional = st.one_of(st.none(), st.binary(max_size=12), st.text(max_size=12).map(str.encode))
records = st.builds(
    Shown,
    st.just("t\x1b"),
    st.integers(0, 9),
    st.integers(0, 2**62),
    st.integers(-1, 2**41),
    optional,
    optional,
    st.lists(st.tuples(st.text(max_size=4), optional), max_size=3),
    st.just(5),
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(records, max_size=4))
def test_json_is_that_of_a_single_record(batch: list[Shown]) -> None:
    assert printer("json")([message(record) for record in batch]) == b"".join(map(to_json, batch))
