"""Confluent's frame, byte by byte."""

from __future__ import annotations

import pytest

from barnabas.spark.decoding.confluent_frame import split_frame, split_message_indexes
from barnabas.spark.decoding.row_decoder import BadValue


def test_a_frame():
    assert split_frame(bytes.fromhex("00 00000011 0a0b")) == (17, b"\x0a\x0b")
    assert split_frame(bytes.fromhex("00 7fffffff")) == (2**31 - 1, b"")


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b'{"a":1}', b"\x01\0\0\0\x11x"])
def test_no_frame(value):
    with pytest.raises(BadValue, match="has no schema id in front"):
        split_frame(value)


def test_message_indexes():
    assert split_message_indexes(b"\x00rest") == ((0,), b"rest")
    assert split_message_indexes(b"\x02\x00rest") == ((0,), b"rest")
    # Two indexes, 1 and 64: zig-zag doubles them, and 128 needs two bytes.
    assert split_message_indexes(b"\x04\x02\x80\x01") == ((1, 64), b"")


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x01", b"\x80", b"\xff\xff\xff\xff\xff\xff"])
def test_no_message_indexes(value):
    with pytest.raises(BadValue, match="has no message indexes"):
        split_message_indexes(value)
