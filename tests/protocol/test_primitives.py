"""Varints, uuids, tag buffers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol import primitives
from barnabas.protocol.errors import EncodeError, MalformedMessage
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, RecordSlice, Uuid, uuid_from_str, uuid_to_str

SETTINGS = settings(derandomize=True, deadline=None, database=None)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (2**32 - 1, "ffffffff0f")],
)
def test_uvarint_golden(value: int, encoded: str) -> None:
    out = bytearray()
    primitives.write_uvarint(out, value)
    assert out.hex() == encoded
    assert primitives.read_uvarint(out, 0, len(out)) == (value, len(out))


@pytest.mark.parametrize("encoded", ["", "80", "ffffffff", "ffffffff1f", "8080808080", "808080808000"])
def test_uvarint_too_short_too_long_too_large(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(MalformedMessage):
        primitives.read_uvarint(data, 0, len(data))


def test_a_reader_stops_at_its_end() -> None:
    with pytest.raises(MalformedMessage):
        primitives.read_uvarint(b"\x80\x01", 0, 1)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_values_outside_the_range(value: int) -> None:
    with pytest.raises(EncodeError):
        primitives.write_uvarint(bytearray(), value)


def test_uuids_print_as_kafkas() -> None:
    assert uuid_to_str(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_str(ONE_UUID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_to_str(Uuid(b"\xfb" * 16)) == "-_v7-_v7-_v7-_v7-_v7-w"
    assert uuid_from_str("-_v7-_v7-_v7-_v7-_v7-w") == b"\xfb" * 16


@SETTINGS
@given(st.binary(min_size=16, max_size=16))
def test_uuid_round_trip(data: bytes) -> None:
    assert uuid_from_str(uuid_to_str(data)) == data


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAé", "A" * 30, "+/v7-_v7-_v7-_v7-_v7-w"])
def test_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        uuid_from_str(text)


def test_skip_tags() -> None:
    data = bytes.fromhex("02 00 01 ff 07 00 aa")
    assert primitives.skip_tags(data, 0, len(data)) == 6
    with pytest.raises(MalformedMessage):
        primitives.skip_tags(data, 0, 3)


def test_a_slice_is_known_by_what_it_has() -> None:
    assert not isinstance(b"", RecordSlice)
    assert not isinstance(memoryview(b""), RecordSlice)
