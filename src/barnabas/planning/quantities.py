"""Rates and sizes as people write them: `500MB/s`, `100000/s`, `1kB`, `2TB`. Units are decimal, as those of disks and links."""

from __future__ import annotations

import re

from barnabas.words.byte_sizes import format_bytes
from barnabas.words.printable import printable

_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGTP]?)B?")
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kKMGTP]?)(B))?/s")


def parse_size(text: str) -> float:
    """Parse `500`, `1kB`, `2TB`; return bytes.

    Raises:
        ValueError: the text is not a size above 0.
    """
    found = _SIZE.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"'{printable(text)}' is not a valid size: write 500, 1kB or 2TB")
    return float(found[1]) * _UNITS[found[2].replace("K", "k")]


def parse_rate(text: str, record_size: float) -> float:
    """Parse `500MB/s`, or `100000/s` records of a size; return bytes a second.

    Raises:
        ValueError: the text is not a rate above 0.
    """
    found = _RATE.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"'{printable(text)}' is not a valid rate: write 500MB/s, or 100000/s for records")
    return float(found[1]) * (_UNITS[found[2].replace("K", "k")] if found[3] else record_size)


def per_second(rate: float) -> str:
    """Return a rate of bytes in words."""
    return f"{format_bytes(round(rate))}/s"


def size(count: float) -> str:
    """Return a number of bytes in words."""
    return format_bytes(round(count))


def many(count: float, noun: str) -> str:
    """Return a count of things in words: `1 day`, `2.5 days`."""
    return f"{count:,.10g} {noun}{'' if count == 1 else 's'}"
