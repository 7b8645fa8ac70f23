"""One part of a record in each format, and the guess for a topic."""

from __future__ import annotations

import json
import struct

import msgpack
import pytest

from barnabas.decoding.decoder import DECODED_BYTES_MAX, FORMATS, SHOWN_BYTES, Decoder
from barnabas.protocol import messages
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Schema

SCHEMAS = KnownSchemas("schemas", {1: Schema('"string"')})
FRAMED = b"\x00\x00\x00\x00\x01\x04ab"
OBJECT = {"a": [1, "x"]}


@pytest.mark.parametrize(
    ("format", "data", "found", "text"),
    [
        ("json", b'{"a":1}', {"a": 1}, '{"a":1}'),
        ("json", FRAMED, "ab", '"ab"'),
        ("avro", FRAMED, "ab", '"ab"'),
        ("protobuf", b"\x08\x07", {"1": 7}, '{"1": 7}'),
        ("msgpack", msgpack.packb(OBJECT), OBJECT, json.dumps(OBJECT)),
        ("text", "€".encode(), "€", "€"),
        ("hex", b"\xff\x00", "ff00", "ff00"),
        ("base64", b"\xff\x00", "/wA=", "/wA="),
    ],
)
def test_each_format(format: str, data: bytes, found: object, text: str) -> None:
    part = Decoder(SCHEMAS).value("orders", None, data, format)
    assert (part.data, part.text, part.size, part.note) == (found, text, len(data), None)


@pytest.mark.parametrize("format", ["", *FORMATS])
def test_a_null_is_a_null(format: str) -> None:
    assert Decoder().value("orders", None, None, format).format == "null"


@pytest.mark.parametrize(
    ("format", "data", "shown", "why"),
    [
        ("json", b"plain", "text", "it is not JSON"),
        ("json", b"\xff\xfe", "hex", "it is not JSON"),
        ("avro", b"plain", "text", "no schema id"),
        ("text", b"\xff", "hex", "it is not UTF-8"),
        ("msgpack", b"\xc1", "hex", "it is not MessagePack"),
        ("protobuf", b"\x00", "hex", "it is not Protobuf"),
        ("json", b"[" * (DECODED_BYTES_MAX + 1), "text", "are more than the 262 kB that are decoded"),
        ("protobuf", b"\x08\x07" * SHOWN_BYTES, "hex", "too large to be read without a schema"),
    ],
)
def test_what_is_not_of_its_format_is_shown_as_it_is(format: str, data: bytes, shown: str, why: str) -> None:
    part = Decoder().value("orders", None, data, format)
    assert part.format == shown
    assert part.note is not None
    assert why in part.note
    assert len(part.text) <= SHOWN_BYTES


def test_without_a_registry() -> None:
    part = Decoder().value("orders", None, FRAMED, "avro")
    assert part.note == "it is of schema 1, and this cluster has no registry: --schemas names one"


def test_an_internal_topic() -> None:
    key = b"\x00\x01" + messages.OffsetCommitKey(group="g", topic="t", partition=3).encode(0)
    value = struct.pack(">h", 4) + messages.OffsetCommitValue(offset=5).encode(4)
    decoder = Decoder()
    assert decoder.guess("__consumer_offsets", [key]) == ""
    assert decoder.key("__consumer_offsets", key, "").format == "internal"
    found = decoder.value("__consumer_offsets", key, value, "").data
    assert isinstance(found, dict)
    assert found["offset"] == 5
    assert decoder.value("__consumer_offsets", key, value, "hex").text == value.hex()
    assert "of type 99" in (decoder.key("__consumer_offsets", b"\x00\x63", "").note or "")


@pytest.mark.parametrize(
    ("parts", "format"),
    [
        ([], "text"),
        ([None, b""], "text"),
        ([b'{"a":1}', None, b"[]"], "json"),
        ([b'{"a":1}', b"17"], "json"),
        ([b"17", b"18"], "text"),
        ([b'{"a":1}', b"{"], "text"),
        ([msgpack.packb(OBJECT)], "msgpack"),
        ([msgpack.packb(OBJECT), b"\xc1"], "hex"),
        ([FRAMED, FRAMED], "avro"),
        ([b"\xff\xfe"], "hex"),
        ([b"\x1b[31m"], "hex"),
    ],
)
def test_the_guess(parts: list[bytes | None], format: str) -> None:
    assert Decoder(SCHEMAS).guess("orders", parts) == format
