"""The elements of DER, as far as a certificate's name needs them.

    ┌─────┬────────┬─────────┐
    │ tag │ length │ content │   length: one byte below 128, else 128 + n and n bytes
    └─────┴────────┴─────────┘

`cryptography` refuses some certificates that Java accepts, for instance for a country of three letters, and its users need not have it.

Source: X.690.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Element", "elements", "object_identifier"]

_LENGTH_BYTES_MAX = 4
_IDENTIFIER_BYTES_MAX = 4096
"""As in the JDK; the work grows with the square of the length."""


class Element(NamedTuple):
    """An element. Attributes: `whole` has tag and length too."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> Iterator[Element]:
    """Yield the elements that follow one another.

    Raises:
        ValueError: the bytes are not DER.
    """
    position = 0
    while position < len(data):
        start = position
        if position + 2 > len(data) or data[position] & 31 == 31:
            raise ValueError("not DER: an element without a length, or with a tag of several bytes")
        tag, length = data[position], data[position + 1]
        position += 2
        if length >= 128:
            count = length - 128
            if not 0 < count <= _LENGTH_BYTES_MAX:
                raise ValueError("not DER: a length of no bytes, or of too many")
            length = int.from_bytes(data[position : position + count])
            position += count
        end = position + length
        if end > len(data):
            raise ValueError("not DER: an element is longer than the bytes around it")
        yield Element(tag, data[position:end], data[start:end])
        position = end


def object_identifier(content: bytes) -> str:
    """Return an object identifier such as `2.5.4.3`.

    Raises:
        ValueError: its last number has no end, or it is too long.
    """
    if len(content) > _IDENTIFIER_BYTES_MAX:
        raise ValueError("not DER: an object identifier of too many bytes")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 127
        if byte < 128:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] >= 128:
        raise ValueError("not DER: an object identifier without an end")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
