"""The frame that Confluent's serializers put in front of a value.

    byte 0 | int32 schema id | message indexes (Protobuf only) | value

The message indexes are zig-zag varints: how many, then the path of the message among the messages of its file and
their nested messages. The path of the first message is the single byte 0.

Source: Confluent Schema Registry's documentation, "Wire format".
"""

from __future__ import annotations

import struct

from barnabas.spark.decoding.bad_value import BadValue

__all__ = ["FRAME_BYTES", "frame", "message_indexes", "split_frame", "split_message_indexes"]

FRAME_BYTES = 5
_FRAME = struct.Struct(">bi")
_VARINT_BYTES = 5


def frame(schema_id: int) -> bytes:
    """Return what is in front of each value of a schema."""
    return _FRAME.pack(0, schema_id)


def message_indexes(path: tuple[int, ...]) -> bytes:
    """Return the path of a message, as it is behind the schema id."""
    if path == (0,):
        return b"\0"
    return b"".join(_zigzag(each) for each in (len(path), *path))


def split_frame(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the rest.

    Raises:
        BadValue: the value has no frame.
    """
    if len(value) < FRAME_BYTES or value[0]:
        raise BadValue("the value has no schema id in front: it does not begin with a zero byte and four bytes of id")
    return _FRAME.unpack_from(value)[1], value[FRAME_BYTES:]


def split_message_indexes(value: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of the message, and the rest.

    Raises:
        BadValue: the value does not begin with a path.
    """
    count, position = _varint(value, 0)
    path: list[int] = []
    for _ in range(count):
        index, position = _varint(value, position)
        path.append(index)
    return tuple(path) or (0,), value[position:]


def _zigzag(number: int) -> bytes:
    left, found = number << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _varint(value: bytes, position: int) -> tuple[int, int]:
    found = 0
    for number, byte in enumerate(value[position : position + _VARINT_BYTES]):
        found |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            decoded = (found >> 1) ^ -(found & 1)
            if decoded >= 0:
                return decoded, position + number + 1
            break
    raise BadValue("the value has no message indexes behind the schema id")
