"""Durations as people write them: `10s`, `1h30m`, `2d`, and ISO 8601 (`P1DT2H`, `PT30M`)."""

from __future__ import annotations

import re

from barnabas.words.printable import printable

__all__ = ["parse_duration_ms"]

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_SHORT = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_ISO_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,3})?)S)?)?"
)


def parse_duration_ms(text: str) -> int:
    """Parse `1h30m`, `45s`, `2d` or ISO 8601 (`P1DT2H`); return milliseconds.

    Raises:
        ValueError: the text is not a duration.
    """
    iso = _ISO_DURATION.fullmatch(text)
    if iso and any(iso[unit] for unit in "wdhms"):
        total = sum(int(float(iso[unit]) * _UNITS_MS[unit]) for unit in "wdhms" if iso[unit])
        return -total if iso["sign"] == "-" else total
    if text and not _SHORT.sub("", text):
        return sum(int(number) * _UNITS_MS[unit] for number, unit in _SHORT.findall(text))
    raise ValueError(f"'{printable(text)}' is not a valid duration: write 1h30m, 2d, or PT1H30M")
