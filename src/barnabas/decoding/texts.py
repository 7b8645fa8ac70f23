"""Bytes as text, hex or base64, at most so many of them."""

from __future__ import annotations

import base64

from barnabas.decoding.decoded import Decoded
from barnabas.spark.decoding.bad_value import BadValue

_BYTES_OF_A_CHARACTER = 4


def as_text(data: bytes, most: int | None) -> Decoded:
    """Return bytes that are UTF-8 as text.

    Args:
        most: how many bytes of it; None for all.

    Raises:
        BadValue: they are not UTF-8.
    """
    is_cut = most is not None and len(data) > most
    shown = data[:most] if is_cut else data
    try:
        text = shown.decode()
    except UnicodeDecodeError as error:
        # The cut may lie within a character, which is then left out.
        if not (
            is_cut and error.start > len(shown) - _BYTES_OF_A_CHARACTER and error.reason == "unexpected end of data"
        ):
            raise BadValue(f"it is not UTF-8: byte {error.start}") from None
        text = shown[: error.start].decode()
    return Decoded("text", text, text, len(data), is_cut)


def as_hex(data: bytes, most: int | None) -> Decoded:
    """Return bytes in hexadecimal digits; `most` is that of `as_text`, of the digits."""
    shown = data if most is None else data[: most // 2]
    text = shown.hex()
    return Decoded("hex", text, text, len(data), len(shown) < len(data))


def as_base64(data: bytes, most: int | None) -> Decoded:
    """Return bytes in base64; `most` is that of `as_text`, of the digits."""
    shown = data if most is None else data[: most // 4 * 3]
    text = base64.b64encode(shown).decode()
    return Decoded("base64", text, text, len(data), len(shown) < len(data))


def is_readable(text: str) -> bool:
    """Return whether a person can read a text: it has no control characters but the white ones."""
    return text.isprintable() or all(each.isprintable() or each in "\t\r\n" for each in text)


def cut(text: str, most: int | None) -> tuple[str, bool]:
    """Return the first characters of a text, and whether it has more."""
    return (text, False) if most is None or len(text) <= most else (text[:most], True)
