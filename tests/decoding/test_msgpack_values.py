"""MessagePack, and bytes that claim to be it."""

from __future__ import annotations

import msgpack
import pytest

from barnabas.decoding.msgpack_values import from_msgpack, to_msgpack
from barnabas.spark.decoding.bad_value import BadValue


def test_an_object() -> None:
    found = {"a": [1, None, b"\xff"], 3: {"b": 1.5}, "ext": msgpack.ExtType(5, b"ab")}
    assert from_msgpack(msgpack.packb(found)) == {
        "a": [1, None, "/w=="], "3": {"b": 1.5}, "ext": [5, "YWI="],
    }  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x01\x02",
        b"\xdd\xff\xff\xff\xff",  # a list of four billion
        b"\xdf\xff\xff\xff\xff\x01",
        b"\x91" * 100_000,
        b"\x81\x90\x01",  # a list as a key
        b"\xa1\xff",
        b"\xc7\x0c\xff" + b"\xff" * 12,  # a time that no calendar has
    ],
)
def test_what_is_not_msgpack(data: bytes) -> None:
    with pytest.raises(BadValue, match="it is not MessagePack"):
        from_msgpack(data)


def test_json_as_msgpack() -> None:
    assert from_msgpack(to_msgpack(b'{"a": [1, null, "x"]}')) == {"a": [1, None, "x"]}
    with pytest.raises(BadValue, match="it is not JSON"):
        to_msgpack(b"{")
    with pytest.raises(BadValue, match="64 bits"):
        to_msgpack(b"18446744073709551616")
