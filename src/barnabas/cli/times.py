"""Times and durations as people write them.

| form                          | means                                            |
|-------------------------------|--------------------------------------------------|
| `1733000000000` (13 digits)   | epoch milliseconds                               |
| `1733000000` (9 to 10 digits) | epoch seconds                                    |
| `2026-11-21`                  | midnight UTC                                     |
| `2026-11-21T10:00:00.000`     | ISO 8601; without a zone UTC, as in Kafka's tools |
| `-1h30m`, `-2d`               | this long ago                                    |
| `P1DT2H`, `PT30M`             | a duration, ISO 8601                             |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from barnabas.printable import printable

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


def parse_time_ms(text: str, now_ms: int) -> int:
    """Parse a point in time; return epoch milliseconds.

    Args:
        now_ms: durations count back from it.

    Raises:
        ValueError: the text is not a time.
    """
    if text.isascii() and text.isdigit():
        if len(text) <= 10:
            return int(text) * 1000
        return int(text)
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"'{printable(text)}' is not a valid time: write epoch milliseconds, 2026-11-21, 2026-11-21T10:00:00, or -1h"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def format_time_ms(milliseconds: int) -> str:
    """Return a point in time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
