"""One part of a record decoded: in the format that a page asks for, or in the format that fits the topic.

| format | is |
|---|---|
| `json` | JSON, also behind the id of a schema |
| `avro` | Avro behind the id of a schema |
| `protobuf` | behind the id of a schema; else fields by number |
| `msgpack` | one object of MessagePack |
| `text` | UTF-8 |
| `hex` `base64` | the bytes |

`guess` chooses a format for the keys or values of a topic from some of them: the format of their schemas, then JSON, MessagePack and text,
if all of them are of it, else hex. Protobuf without a schema is never guessed, since much else parses as it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from barnabas.decoding.decoded import NULL, Decoded
from barnabas.decoding.internal_topics import INTERNAL_TOPICS, key_of, value_of
from barnabas.decoding.json_values import as_written, from_json
from barnabas.decoding.masks import Masks, masked_bytes
from barnabas.decoding.msgpack_values import from_msgpack
from barnabas.decoding.plain_data import as_json
from barnabas.decoding.protobuf_fields import from_fields
from barnabas.decoding.texts import as_base64, as_hex, as_text, is_readable
from barnabas.records.record import Record
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.bad_value import BadValue
from barnabas.spark.decoding.confluent_frame import FRAME_BYTES, split_frame
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.requirements import NotInstalled, needed_by

FORMATS = ("json", "avro", "protobuf", "msgpack", "text", "hex", "base64")
SHOWN_BYTES = 65_536
"""A value is cut behind them, unless all of it is asked for."""
DECODED_BYTES_MAX = 256 * 1024
"""Larger ones are shown as text or hex: a decoder in C holds the interpreter until it is done."""
_STRUCTURED = ("json", "avro", "protobuf", "msgpack")


class Decoder:
    """Decodes the records of a cluster.

    Args:
        source: the schemas by id; None without a registry.
        masks: hidden fields. `key` and `value` decode what they get: a reader of records calls `masked` first.
    """

    def __init__(self, source: SchemaSource | None = None, masks: Masks | None = None) -> None:
        self.masks = masks or Masks()
        self._source = source
        self._framed: Any = None

    def __repr__(self) -> str:
        return f"<Decoder {'without' if self._source is None else 'with'} schemas>"

    def key(self, topic: str, data: bytes | None, format: str, most: int | None = SHOWN_BYTES) -> Decoded:
        """Return the key of a record.

        Args:
            format: one of `FORMATS`. The keys of internal topics have one of their own, and are of it if this is empty.
            most: bytes to show; None for all.
        """
        if data is not None and not format and topic in INTERNAL_TOPICS and len(data) <= DECODED_BYTES_MAX:
            try:
                return as_json("internal", key_of(topic, data), len(data), most)
            except BadValue as error:
                return _as_it_is(data, most)._replace(note=str(error))
        return self._part(data, format, most)

    def value(
        self, topic: str, key: bytes | None, data: bytes | None, format: str, most: int | None = SHOWN_BYTES
    ) -> Decoded:
        """Return the value of a record; arguments as in `key`."""
        if data is not None and not format and topic in INTERNAL_TOPICS and len(data) <= DECODED_BYTES_MAX:
            try:
                return as_json("internal", value_of(topic, key, data), len(data), most)
            except BadValue as error:
                return _as_it_is(data, most)._replace(note=str(error))
        return self._part(data, format, most)

    def masked(self, topic: str, record: Record, key_as: str, value_as: str) -> Record:
        """Return a record without the fields that its topic's mask hides.

        Args:
            key_as, value_as: how its parts are decoded; empty to guess each.
        """
        mask = self.masks.of(topic)
        if mask is None:
            return record
        key, value = record.key, record.value
        if key is not None and mask.key:
            key = masked_bytes(self.key(topic, key, key_as or self.guess(topic, [key]), None), mask.key)
        if value is not None and mask.value:
            value_as = value_as or self.guess(topic, [value])
            value = masked_bytes(self.value(topic, record.key, value, value_as, None), mask.value)
        return record._replace(key=key, value=value, headers=mask.masked_headers(record.headers))

    def guess(self, topic: str, parts: Iterable[bytes | None]) -> str:
        """Return the format that fits some keys or values of a topic; empty for an internal topic."""
        if topic in INTERNAL_TOPICS:
            return ""
        seen = [each for each in parts if each]
        if not seen:
            return "text"
        if (framed := self._framed_format(seen)) is not None:
            return framed
        if any(each.lstrip()[:1] in (b"{", b"[") for each in seen) and all(_is(from_json, each) for each in seen):
            return "json"
        if all(map(_is_text, seen)):
            return "text"
        if all(_is_object_of_msgpack(each) for each in seen):
            return "msgpack"
        return "hex"

    def _part(self, data: bytes | None, format: str, most: int | None) -> Decoded:
        if data is None:
            return NULL
        if format in _STRUCTURED and len(data) > DECODED_BYTES_MAX:
            note = f"{format_bytes(len(data))} are more than the {format_bytes(DECODED_BYTES_MAX)} that are decoded"
            return _as_it_is(data, most)._replace(note=note)
        try:
            match format:
                case "json":
                    return self._of_json(data, most)
                case "avro":
                    return self._of_schema(data, most)
                case "protobuf":
                    return self._of_protobuf(data, most)
                case "msgpack":
                    return as_json("msgpack", from_msgpack(data), len(data), most)
                case "hex":
                    return as_hex(data, most)
                case "base64":
                    return as_base64(data, most)
                case "text":
                    return as_text(data, most)
        except BadValue as error:
            return _as_it_is(data, most)._replace(note=str(error))
        except NotInstalled as error:
            return _as_it_is(data, most)._replace(note=f"{error.sentence}: {error.command}")
        return _as_it_is(data, most)

    def _of_json(self, data: bytes, most: int | None) -> Decoded:
        if self._source is not None and _has_frame(data):
            return self._of_schema(data, most)
        return as_written(data, most)

    def _of_protobuf(self, data: bytes, most: int | None) -> Decoded:
        if self._source is not None and _has_frame(data):
            return self._of_schema(data, most)
        if len(data) > SHOWN_BYTES:
            raise BadValue("it is too large to be read without a schema")
        return as_json("protobuf", from_fields(data), len(data), most)

    def _of_schema(self, data: bytes, most: int | None) -> Decoded:
        if self._source is None:
            schema_id, _ = split_frame(data)
            raise BadValue(f"it is of schema {schema_id}, and this cluster has no registry: --schemas names one")
        found, value = self._framed_values(self._source).decode(data)
        return as_json(found, value, len(data), most)

    def _framed_values(self, source: SchemaSource) -> Any:
        if self._framed is None:
            with needed_by("decoding by schemas", "schemas"):
                self._framed = import_module("barnabas.decoding.framed_values").FramedValues(source)
        return self._framed

    def _framed_format(self, parts: list[bytes]) -> str | None:
        if not all(map(_has_frame, parts)):
            return None
        if self._source is None:
            return "avro" if not any(_is(from_msgpack, each) for each in parts) else None
        try:
            found: str = self._framed_values(self._source).format_of(parts[0])
        except (BadValue, NotInstalled):
            return "avro"  # shown as bytes, with the reason
        return found


def _has_frame(data: bytes) -> bool:
    return len(data) > FRAME_BYTES and data[0] == 0


def _is(parse: Any, data: bytes) -> bool:
    if len(data) > DECODED_BYTES_MAX:
        return False
    try:
        parse(data)
    except BadValue:
        return False
    return True


def _is_text(data: bytes) -> bool:
    try:
        return is_readable(as_text(data, SHOWN_BYTES).text)
    except BadValue:
        return False


def _is_object_of_msgpack(data: bytes) -> bool:
    """Return whether bytes are a map or a list of MessagePack; a number is one byte, as much else."""
    first = data[0]
    return (0x80 <= first <= 0x9F or 0xDC <= first <= 0xDF) and _is(from_msgpack, data)


def _as_it_is(data: bytes, most: int | None) -> Decoded:
    try:
        found = as_text(data, most)
    except BadValue:
        return as_hex(data, most)
    return found if is_readable(found.text) else as_hex(data, most)
