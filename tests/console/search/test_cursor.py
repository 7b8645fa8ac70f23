"""Where a search goes on, as text."""

from __future__ import annotations

import random

import pytest

from barnabas.console.search.cursor import Cursor
from barnabas.console.search.query import BadQuery
from barnabas.console.search.span import PARTITIONS_MAX, UNKNOWN, PartitionSpan

NONE_UNJUDGED = (0, 0, 0)


def drawn(dice: random.Random) -> Cursor:
    spans = []
    for partition in range(dice.randrange(5)):
        begin = dice.randrange(10**6)
        end = begin + dice.choice((0, 1, 10**12))
        edge_ms = dice.choice((None, -1, -(10**14), 0, 1_700_000_000_000))
        counts = [dice.randrange(10**9) for _ in range(4)]
        spans.append(
            PartitionSpan(partition, begin, end, end, dice.randrange(9), dice.choice((begin, end)), edge_ms, *counts)
        )
    return Cursor(dice.randbytes(16), dice.randrange(99), 3, (0, dice.randrange(99), 1), spans)


def test_text_and_back() -> None:
    dice = random.Random(1)
    for _ in range(200):
        cursor = drawn(dice)
        text = cursor.text()
        assert Cursor.of(text) == cursor
        assert text.replace("-", "").replace("_", "").replace(".", "").isalnum()


def test_an_unknown_partition() -> None:
    cursor = Cursor(bytes(16), 0, 0, NONE_UNJUDGED, [PartitionSpan(3, UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN)])
    assert Cursor.of(cursor.text()) == cursor


def test_many_partitions_fit_into_an_address() -> None:
    spans = [
        PartitionSpan(each, 10**9, 2 * 10**9, 2 * 10**9, 0, 10**9 + 5, 1_700_000_000_000, 10**6)
        for each in range(PARTITIONS_MAX)
    ]
    assert len(Cursor(bytes(16), 0, 0, NONE_UNJUDGED, spans).text()) < 20_000


GOOD = Cursor(bytes(16), 0, 0, NONE_UNJUDGED, [PartitionSpan(0, 5, 9, 9, 0, 6)]).text()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "2..0-0-0-0-0",
        GOOD.replace("2.", "1.", 1),
        GOOD.replace("0-0-0-0-0", "0-0-0"),
        GOOD + ".0",
        GOOD.replace("-6-", "-4-"),
        GOOD.replace("-6-", "-z-"),
        GOOD.replace("-6-", "-N-"),
        GOOD.replace("-6-", "-ü-"),
        GOOD[:-1] + "M1",
        GOOD + "9" * 100,
        "2.AAAA.0-0-0-0-0",
        "\x00",
        "." * 1000,
    ],
)
def test_what_is_no_cursor(text: str) -> None:
    with pytest.raises(BadQuery, match="does not say where the search goes on"):
        Cursor.of(text)
