"""What was measured of a choice, run by run, in a JSON file: a measurement may be done piece by piece, on another day or machine.

The file holds a list with one entry for a run of a row on a side: {"table", "row", "side", "day", "figures": {name: value}}.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
from pathlib import Path
from typing import NamedTuple


class Range(NamedTuple):
    """The median of a figure, its least and its greatest value, and how many runs they come from."""

    median: float
    least: float
    greatest: float
    runs: int


class Pieces:
    """The entries of a file; the file need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[dict[str, object]] = json.loads(path.read_text()) if path.exists() else []

    def add(self, table: str, row: str, side: str, figures: dict[str, float]) -> None:
        """Add a run, and keep it: what follows may be cut short."""
        day = str(datetime.date.today())
        rounded = {name: float(f"{value:.4g}") for name, value in figures.items()}
        self.entries.append({"table": table, "row": row, "side": side, "day": day, "figures": rounded})
        self._keep()

    def forget(self, table: str, row: str, side: str) -> None:
        """Drop what earlier runs said of a row."""
        self.entries = [e for e in self.entries if (e["table"], e["row"], e["side"]) != (table, row, side)]
        self._keep()

    def rows(self, table: str) -> list[str]:
        """Return the rows of a table in the order in which they were first measured."""
        return list(dict.fromkeys(str(e["row"]) for e in self.entries if e["table"] == table))

    def measured(self, table: str) -> list[tuple[str, str, str]]:
        """Return row, side and figure of everything that a table has."""
        found = {}
        for entry in self.entries:
            figures = entry["figures"]
            assert isinstance(figures, dict)
            if entry["table"] == table:
                found |= dict.fromkeys((str(entry["row"]), str(entry["side"]), name) for name in figures)
        return list(found)

    def days(self, table: str) -> list[str]:
        """Return the days on which a table was measured, in order."""
        return sorted({str(e["day"]) for e in self.entries if e["table"] == table})

    def range(self, table: str, row: str, side: str, figure: str) -> Range | None:
        """Return a figure of all runs, or None if it was never measured."""
        found: list[float] = []
        for entry in self.entries:
            figures = entry["figures"]
            assert isinstance(figures, dict)
            if (entry["table"], entry["row"], entry["side"]) == (table, row, side) and figure in figures:
                found.append(figures[figure])
        return Range(statistics.median(found), min(found), max(found), len(found)) if found else None

    def _keep(self) -> None:
        lines = ",\n".join(json.dumps(entry, sort_keys=True) for entry in self.entries)
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.write_text(f"[\n{lines}\n]\n")
        os.replace(beside, self.path)
