"""What a command printed, compared with what its page shows.

Two outputs are equal if they are equal to the byte, but for trailing blanks and for the few things that no two runs print alike. Each of
these has a name, and both sides show the name in its place:

    <time>      2026-11-27T07:08:59.835Z
    <id>        an id of 22 characters of base64, such as a cluster's, a topic's or a member's; the digest in the name of an import
    <port>      a port that the system chose, behind an address
    <folder>    a temporary folder of barnabas

Where a page says so in front of a block, more may differ:

    <!-- output: in any order -->         the order of the lines
    <!-- output: other numbers -->        every number; of a list of nodes only the order
    <!-- output: other durations -->      such as 58s or 12m40s
    <!-- output: other measures -->       numbers that are measured: with a fraction, of two digits and more, or before a unit
    <!-- output: some lines -->           the page leaves lines out, and the last columns of those that it shows

The width of a column may follow one of them, so that on such a line only the number of blanks may differ as well.
"""

from __future__ import annotations

import difflib
import re

_ALWAYS = {
    "time": r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "folder": r"/tmp/barnabas-[a-z]+-\w+",
    "id": r"(?<![\w+-])(?=[\w+-]*[A-Z])(?=[\w+-]*[a-z])[\w+-]{22}(?![\w+-])|(?<=-)[0-9a-f]{12}(?=-)",
    "port": r"(?<=127\.0\.0\.1:)(?:3[3-9]|[45]\d|6[0-5])\d{3}\b",
}
_ASKED = {
    "other durations": ("duration", r"\b(?:\d+(?:\.\d+)?(?:ms|[smhd]))+(?!\w)"),
    "other measures": (
        "measure",
        r"(?<![\w.])\d[\d,]*(?:\.\d+\b|(?= (?:[kMGT]?B/s))|(?=/s))|(?<![\w.])\d[\d,]+(?![\w.])",
    ),
}
ANY_ORDER, OTHER_NUMBERS, SOME_LINES = "in any order", "other numbers", "some lines"
DIRECTIVES = frozenset(_ASKED) | {ANY_ORDER, OTHER_NUMBERS, SOME_LINES}
_NOT_OURS = re.compile(r"bash: line \d+: +\d+ Killed .*|%\d\|\d+\.\d+\|.*")
"""Lines that no command of the page prints: a shell's notice of a program that was killed, and librdkafka's own log."""


def comparable(output: str, differs: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of an output, with names in the place of what differs from run to run.

    Raises:
        ValueError: the page says something about an output that nobody knows.
    """
    if unknown := set(differs) - DIRECTIVES:
        raise ValueError(f"no output may differ as the page says: {', '.join(sorted(unknown))}")
    patterns = [*_ALWAYS.items(), *(_ASKED[asked] for asked in differs if asked in _ASKED)]
    ours = [line.rstrip() for line in output.rstrip().splitlines() if not _NOT_OURS.fullmatch(line.rstrip())]
    lines = [_named(line, patterns, OTHER_NUMBERS in differs) for line in ours]
    return sorted(lines) if ANY_ORDER in differs else lines


def _named(line: str, patterns: list[tuple[str, str]], other_numbers: bool) -> str:
    named = line
    for name, pattern in patterns:
        named = re.sub(pattern, f"<{name}>", named)
    if other_numbers:
        named = re.sub(r"\d+(?:,\d+)*", _number, named)
    return named if named == line and not other_numbers else " ".join(named.split())


def _number(found: re.Match[str]) -> str:
    return ",".join(sorted(found[0].split(","))) if "," in found[0] else "<number>"


def difference(shown: str, printed: str, differs: tuple[str, ...] = ()) -> str:
    """Return how what was printed differs from what the page shows, as a diff; empty if it does not.

    A table's head has the width of its columns, so if a line below it has one of the names, blanks count in none of the lines.
    """
    page, came = comparable(shown, differs), comparable(printed, differs)
    if any("<" in line and re.search(r"<(time|id|port|folder|duration|measure)>", line) for line in (*page, *came)):
        page, came = [" ".join(line.split()) for line in page], [" ".join(line.split()) for line in came]
    if SOME_LINES in differs:
        page, came = [" ".join(line.split()) for line in page], [" ".join(line.split()) for line in came]
        left = iter(came)
        if all(any(printed.startswith(line) for printed in left) for line in page):
            return ""
    return "\n".join(difflib.unified_diff(page, came, "the page", "printed", lineterm=""))
