"""`--record`: a long run that ends well leaves its line in docs/long-runs.md, in the place of its last one.

A line is that of a program and of what it was asked for, such as the sink's kill matrix on Apache Kafka. A run that fails leaves no line,
so the page has the last green ones.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from barnabas.version import VERSION, commit

PAGE = Path(__file__).parents[1] / "docs" / "long-runs.md"
_OF = "| run |"


class LongRun:
    """One run of a program; make it when the run begins.

    Args:
        word: of make, such as `kills`.
        what: what the page calls the run; a later one of this name takes its place.
        is_kept: whether `--record` was given.
    """

    def __init__(self, word: str, what: str, *, is_kept: bool, page: Path = PAGE) -> None:
        self._word = word
        self._what = what
        self._page = page if is_kept else None
        self._commit = commit() if is_kept else None
        self._began_s = time.monotonic()

    def __repr__(self) -> str:
        return f"<LongRun {self._what}>"

    def ended(self, counted: str) -> None:
        """Write what a green run counted."""
        if self._page is None:
            return
        minutes = (time.monotonic() - self._began_s) / 60
        words = shlex.join(each for each in sys.argv[1:] if each != "--record")
        command = f"make {self._word}" + (f' ARGS="{words}"' if words else "")
        version = f"{VERSION}, {self._commit or 'no commit'}"
        cells = (self._what, f"{datetime.now(UTC):%Y-%m-%d}", f"`{command}`", version, f"{minutes:.1f} min", counted)
        line = f"| {' | '.join(cells)} |"
        before, head, table = self._page.read_text().partition(_OF)
        first, rule, *lines = table.splitlines()
        kept = [each for each in lines if not each.startswith(f"| {self._what} |")]
        self._page.write_text(before + head + "\n".join([first, rule, *sorted([*kept, line])]) + "\n")


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Give a program the flag."""
    parser.add_argument("--record", action="store_true", help="if all goes well, write a line of docs/long-runs.md")
