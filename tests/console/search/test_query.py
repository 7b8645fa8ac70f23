"""A search as an address, and as a command."""

from __future__ import annotations

import random
import shlex
from dataclasses import replace
from typing import Any

import pytest

from barnabas.cli.consume import consume
from barnabas.console.search.query import BadQuery, Query

CHOICES: dict[str, list[Any]] = {
    "offset": ["", "start", "-100", "5:7", "@-1h", "s@5 e@9"],
    "partitions": [(), (0,), (3, 17)],
    "key": [None, "a b&c=ü", "00ff"],
    "key_encoding": ["", "hex"],
    "header": ["", "n", "n:v:w"],
    "since": ["", "-1h", "2026-11-21"],
    "until": ["", "1895219200000"],
    "filter": ["", 'value.a > 3 && key == "x"'],
    "limit": [50, 1, 500],
    "order": ["newest", "oldest"],
    "isolation_level": ["read_committed", "read_uncommitted"],
    "control": [False, True],
    "key_as": ["", "hex"],
    "value_as": ["", "json"],
}


def drawn(dice: random.Random) -> Query:
    found = Query("orders", **{name: dice.choice(values) for name, values in CHOICES.items()})
    if found.key is not None:
        found = replace(found, partitioner=dice.choice(("", "murmur2_random")))
    return replace(found, key_encoding="") if found.key != "00ff" else found


def test_an_address_and_back() -> None:
    dice = random.Random(5)
    for _ in range(500):
        query = drawn(dice)
        assert Query.of(query.parameters()) == query


def test_the_command_is_parsed_and_reads_the_same() -> None:
    dice = random.Random(6)
    for _ in range(100):
        query = drawn(dice)
        words = shlex.split(query.consume_line())
        assert words[:2] == ["barnabas", "consume"]
        given = consume.make_context("consume", words[2:], resilient_parsing=True).params
        assert given["topics"] == ("orders",)
        assert list(given["offsets"]) == query.offset.split()
        assert given["isolation_level"] == query.isolation_level
        assert given["partitions"] == ((",".join(map(str, query.partitions)),) if query.partitions else ())
        assert given["exit_at_end"]


def test_what_the_command_has_no_option_for() -> None:
    query = Query("t", key="00", key_encoding="hex", header="h\x1b", since="-1h", filter="true", control=True)
    assert query.beyond_consume() == ["key", "header", "since", "control"]
    assert shlex.split(query.consume_line())[4:6] == ["--filter", "true"]
    assert Query("t", offset="5:7", partitions=(1,), key="k").beyond_consume() == []


def test_times_that_do_not_move() -> None:
    fixed = Query("t", since="-1h", until="-1m").fixed(10_000_000)
    assert (fixed.since, fixed.until) == ("0000006400000", "0000009940000")
    assert fixed.times(99_999_999) == (6_400_000, 9_940_000)


def test_the_key() -> None:
    assert Query("t", key="ä").key_bytes() == "ä".encode()
    assert Query("t", key="00 ff", key_encoding="hex").key_bytes() == b"\x00\xff"
    assert Query("t", key="AP8=", key_encoding="base64").key_bytes() == b"\x00\xff"
    assert Query("t").key_bytes() is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "names no topic"),
        ({"topic": "t", "offset": "5:3"}, "ends before it begins"),
        ({"topic": "t", "offset": "nowhere"}, "is not a valid offset"),
        ({"topic": "t", "offset": "@99999999999999999999"}, "offset cannot be used"),
        ({"topic": "t", "since": "99999999999999999999"}, "one is too late"),
        ({"topic": "t", "partitions": "a"}, "not a list of numbers"),
        ({"topic": "t", "partitions": "-1"}, "not a list of numbers"),
        ({"topic": "t", "since": "soon"}, "“since” cannot be used"),
        ({"topic": "t", "since": "-1m", "until": "-1h"}, "is not before"),
        ({"topic": "t", "key": "x", "key_encoding": "hex"}, "The key is not hex"),
        ({"topic": "t", "partitioner": "murmur2"}, "needs a key"),
        ({"topic": "t", "key": "a", "partitioner": "murmer2"}, "did you mean murmur2"),
        ({"topic": "t", "limit": "0"}, "from 1 to 500"),
        ({"topic": "t", "limit": "501"}, "from 1 to 500"),
        ({"topic": "t", "limit": "²"}, "from 1 to 500"),
        ({"topic": "t", "order": "random"}, "not one of newest, oldest"),
        ({"topic": "t", "value_as": "<b>"}, "not one of json"),
    ],
)
def test_what_cannot_be_used(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadQuery) as found:
        Query.of(given)
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)
