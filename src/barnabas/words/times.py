"""Times as people write them.

| form                          | means                                            |
|-------------------------------|--------------------------------------------------|
| `1733000000000` (13 digits)   | epoch milliseconds                               |
| `1733000000` (9 to 10 digits) | epoch seconds                                    |
| `2026-11-21`                  | midnight UTC                                     |
| `2026-11-21T10:00:00.000`     | ISO 8601; without a zone UTC, as in Kafka's tools |
| `-1h30m`, `-2d`               | this long ago                                    |
"""

from __future__ import annotations

from datetime import UTC, datetime

from barnabas.words.durations import parse_duration_ms
from barnabas.words.printable import printable


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
