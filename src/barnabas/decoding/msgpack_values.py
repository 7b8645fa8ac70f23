"""Values in MessagePack: the whole of the bytes is one object."""

from __future__ import annotations

import json
from typing import Any

from barnabas.decoding.plain_data import plain
from barnabas.spark.decoding.bad_value import BadValue
from barnabas.words.requirements import needed_by


def from_msgpack(data: bytes) -> Any:
    """Return the object, as JSON has it; an extension is a list of its type and its bytes.

    Raises:
        BadValue: it is not MessagePack.
        NotInstalled: the library is missing.
    """
    with needed_by("MessagePack", "decoding"):
        import msgpack
    try:
        return plain(msgpack.unpackb(data, raw=False, strict_map_key=False, ext_hook=_extension, timestamp=1))
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise BadValue(f"it is not MessagePack: {error or type(error).__name__}") from None


def to_msgpack(text: bytes) -> bytes:
    """Return JSON as MessagePack.

    Raises:
        BadValue: it is not JSON, or has a number of more than 64 bits.
        NotInstalled: the library is missing.
    """
    with needed_by("MessagePack", "decoding"):
        import msgpack
    try:
        found: bytes = msgpack.packb(json.loads(text))
    except OverflowError:
        raise BadValue("it has a number of more than 64 bits") from None
    except (ValueError, RecursionError):
        raise BadValue("it is not JSON") from None
    return found


def _extension(number: int, data: bytes) -> list[object]:
    return [number, data]
