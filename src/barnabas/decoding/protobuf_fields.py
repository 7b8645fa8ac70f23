"""Protobuf without a schema: fields by number, as `protoc --decode_raw` has them.

The wire has only four kinds of fields. Numbers are shown unsigned. A field with bytes is a message if all of it parses as one, else text if
it is UTF-8 that people can read, else bytes in base64; so a text may be shown as a message.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import base64
import struct
from typing import Any

from barnabas.decoding.texts import is_readable
from barnabas.spark.decoding.bad_value import BadValue

_DEPTH_MAX = 32
_VARINT_BITS_MAX = 63
_FIELD_NUMBER_MAX = (1 << 29) - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: struct.Struct("<Q"), _FIXED32: struct.Struct("<I")}


def from_fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a message by their numbers; a field that is repeated is a list.

    Raises:
        BadValue: it is not a message.
    """
    return _message(memoryview(data), _DEPTH_MAX)


def _message(data: memoryview, depth: int) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if not 1 <= number <= _FIELD_NUMBER_MAX:
            raise BadValue(f"it is not Protobuf: there is no field {number}")
        value: Any
        if kind == _VARINT:
            value, position = _varint(data, position)
        elif kind == _BYTES:
            size, position = _varint(data, position)
            if size > len(data) - position:
                raise BadValue(f"it is not Protobuf: field {number} runs over its end")
            value = _of_bytes(data[position : position + size], depth)
            position += size
        elif kind in _FIXED:
            layout = _FIXED[kind]
            if layout.size > len(data) - position:
                raise BadValue(f"it is not Protobuf: field {number} runs over its end")
            (value,) = layout.unpack_from(data, position)
            position += layout.size
        else:
            raise BadValue(f"it is not Protobuf: field {number} is of no known kind")
        found.setdefault(str(number), []).append(value)
    return {number: values[0] if len(values) == 1 else values for number, values in found.items()}


def _of_bytes(data: memoryview, depth: int) -> Any:
    if len(data) and depth:
        try:
            return _message(data, depth - 1)
        except BadValue:
            pass
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
    return text if is_readable(text) else base64.b64encode(data).decode()


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift <= _VARINT_BITS_MAX:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise BadValue("it is not Protobuf: a number has no end")
