"""The primitive types of Kafka's protocol: their Python types, and the slow ends of their encodings.

The compiled codecs (see `codec`) write fixed-size fields with `struct` and inline the one-byte varint; everything rarer
lives here. All integers on the wire are big-endian.

    unsigned varint   7 bits a byte, low bits first, the high bit says "more"; at most 5 bytes (32 bits)
    tag buffer        uvarint count, then for each field: uvarint tag, uvarint size, bytes; tags ascend

Invariants:
- A reader never looks past the end it is given and never allocates more than the bytes it has could describe.
- Every error of the bytes becomes `MalformedMessage`, here or at the border in `message`.

Sources: Kafka's protocol guide, KIP-482 (flexible versions), `ByteUtils`, `Uuid`.
"""

from __future__ import annotations

import base64
import binascii
from typing import NewType, Protocol, runtime_checkable

from barnabas.protocol.errors import EncodeError, MalformedMessage

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes, most significant first, as on the wire."""

ZERO_UUID = Uuid(bytes(16))
"""Kafka's "no id": the default of every uuid field."""

ONE_UUID = Uuid(bytes(15) + b"\x01")
"""Reserved: the topic id of `__cluster_metadata`."""

Buffer = bytes | bytearray | memoryview


@runtime_checkable
class RecordSlice(Protocol):
    """Record bytes in a file, so that a response can carry them without reading them."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    @property
    def position(self) -> int:
        """Where they begin in the file of `fileno()`."""

    def read(self) -> bytes:
        """Read all `size` bytes."""

    def fileno(self) -> int:
        """Return the descriptor for sendfile, -1 if the records lie in no open file."""


def uuid_to_str(uuid: bytes) -> str:
    """Print a uuid as Kafka does: url-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_from_str(text: str) -> Uuid:
    """Parse what `uuid_to_str` prints.

    Raises:
        ValueError: the text is not a uuid.
    """
    if "+" in text or "/" in text:
        raise ValueError(f"not a uuid: {text!r} is not url-safe base64")
    try:
        uuid = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"not a uuid: {text!r}") from error
    if len(uuid) != 16:
        raise ValueError(f"not a uuid: {text!r} holds {len(uuid)} bytes, not 16")
    return Uuid(uuid)


def read_uvarint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint; returns the value and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        if pos >= end:
            raise MalformedMessage("varint is cut off")
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedMessage("varint exceeds 32 bits")
            return value, pos
    raise MalformedMessage("varint is longer than 5 bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned 32-bit varint."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise EncodeError(f"{value} is outside the range of an unsigned varint")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def skip_tags(buf: Buffer, pos: int, end: int) -> int:
    """Skip a tag buffer of which no tag is known; returns the position after it."""
    count, pos = read_uvarint(buf, pos, end)
    last = -1
    for _ in range(count):
        tag, size, pos = read_tag(buf, pos, end, last)
        last = tag
        pos += size
    return pos


def read_tag(buf: Buffer, pos: int, end: int, last: int) -> tuple[int, int, int]:
    """Read the head of a tagged field: tag and size, both uvarints.

    Args:
        last: the tag before this one, -1 at first; tags must ascend, so that no field occurs twice.

    Returns:
        The tag, the size of the field, and the position of its first byte; the field ends within `end`.
    """
    tag, pos = read_uvarint(buf, pos, end)
    if tag <= last:
        raise MalformedMessage(f"tag {tag} follows tag {last}")
    size, pos = read_uvarint(buf, pos, end)
    if size > end - pos:
        raise MalformedMessage(f"tagged field of {size} bytes where {end - pos} remain")
    return tag, size, pos
