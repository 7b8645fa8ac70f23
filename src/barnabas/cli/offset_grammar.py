"""`--offset`: where to begin and end reading, in rpk's grammar with kcat's spellings.

    offset    = point | point ":" point | ":" point
    point     = "start" | "beginning" | "earliest"
              | "end" | "latest"
              | NUMBER            exactly there
              | "+" NUMBER        this many after the start
              | "-" NUMBER        this many before the end of each partition
              | "@" TIME          the first record at or after the time
              | "s@" TIME         begin there (kcat)
              | "e@" TIME         end there (kcat)

An end is exclusive: `5:7` reads offsets 5 and 6, `:end` reads until where the log ends now. Times are those of
`times`; they contain colons themselves, so a range of times splits where both halves make sense.

Points are resolved against each partition's bounds once, before reading: `Point.resolve`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.client.log_points import Anchor, Point
from barnabas.words.printable import printable
from barnabas.words.times import parse_time_ms


class Range(NamedTuple):
    """Where to begin and end; without an end the reader continues."""

    begin: Point
    end: Point | None = None


class Span(NamedTuple):
    """A range resolved in one partition.

    Attributes:
        begin: the first offset.
        end: the offset after the last one; None to continue.
        log_end: where the log ends now.
    """

    begin: int
    end: int | None
    log_end: int


START = Point(Anchor.START)
END = Point(Anchor.END)
_WORDS = {"start": START, "beginning": START, "earliest": START, "end": END, "latest": END}
_HELP = "use start, end, 47, +2, -3, @TIME, or a range such as 5:7 or :end"


def _parse_point(text: str, now_ms: int) -> Point:
    if text in _WORDS:
        return _WORDS[text]
    if (point := Point.of_number(text)) is not None:
        return point
    if text.startswith("@"):
        return Point(Anchor.TIME, parse_time_ms(text[1:], now_ms))
    raise ValueError(f"'{printable(text)}' is not a valid offset: {_meant_as_time(text) or _HELP}")


def _meant_as_time(text: str) -> str | None:
    """Return what to write if the text is a time, or a range of times, without its @."""
    if text.startswith("@") or not text:
        return None
    try:
        _parse_one(f"@{text}", 0)
    except ValueError:
        return None
    return f"for a time write @{printable(text)}"


def _parse_one(text: str, now_ms: int) -> Range:
    if text[:2] in ("s@", "e@"):
        digits = text[2:].isascii() and text[2:].isdigit()  # kcat means milliseconds, however few
        point = Point(Anchor.TIME, int(text[2:]) if digits else parse_time_ms(text[2:], now_ms))
        return Range(point) if text[0] == "s" else Range(START, point)
    if text.startswith(":"):
        return Range(START, _parse_point(text[1:], now_ms))
    try:
        return Range(_parse_point(text, now_ms))
    except ValueError as error:
        reason = error
    timed = text.startswith("@")
    for match in re.finditer(":", text):
        begin, end = text[: match.start()], text[match.end() :]
        if timed and end and end not in _WORDS and not end.startswith("@"):
            end = "@" + end  # `@T1:T2`
        try:
            return Range(_parse_point(begin, now_ms), _parse_point(end, now_ms))
        except ValueError:
            continue
    raise reason


def _check_order(wanted: Range, text: str) -> None:
    """Reject a range that ends before it begins; START and END depend on the log and are not compared."""
    begin, end = wanted
    if end is None or begin.anchor is not end.anchor or begin.anchor not in (Anchor.EXACT, Anchor.TIME):
        return
    if end.number < begin.number:
        raise ValueError(f"'{printable(text)}' ends before it begins")


def parse_offsets(texts: tuple[str, ...], now_ms: int) -> Range:
    """Parse the values of `--offset`; only kcat's `s@` and `e@` may be combined.

    Raises:
        ValueError: a value is not an offset; the message shows the grammar.
    """
    if not texts:
        return Range(START)
    ranges = [_parse_one(text.strip(), now_ms) for text in texts]
    if len(ranges) == 1:
        _check_order(ranges[0], texts[0])
        return ranges[0]
    if len(ranges) == 2 and sorted(text.strip()[:2] for text in texts) == ["e@", "s@"]:
        begin = next(each for each, text in zip(ranges, texts, strict=True) if text.strip()[0] == "s")
        end = next(each for each, text in zip(ranges, texts, strict=True) if text.strip()[0] == "e")
        both = Range(begin.begin, end.end)
        _check_order(both, " ".join(texts))
        return both
    raise ValueError(f"only s@TIME and e@TIME can be given together: {_HELP}")
