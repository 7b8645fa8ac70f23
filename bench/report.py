"""From runs to a table of medians and ratios."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

OURS, THEIRS, CONNECTOR = "barnabas", "apache-kafka", "spark-connector"
THEIR_CLUSTER = "apache-kafka-cluster"
TITLES = {
    OURS: "barnabas",
    THEIRS: "Apache Kafka",
    CONNECTOR: "Spark's Kafka connector",
    THEIR_CLUSTER: "Apache Kafka",
}


class Row(NamedTuple):
    """One figure of both sides, as words.

    Attributes:
        spread: the lowest and the highest ratio of one pair of runs.
    """

    scenario: str
    figure: str
    ours: str
    theirs: str
    ratio: str
    spread: str


class Results:
    """Every figure of every run: (scenario, figure, side) → values."""

    def __init__(self, theirs: str = THEIRS) -> None:
        self.theirs = theirs
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def add(self, scenario: str, side: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.values[scenario, name, side].append(value)

    def rows(self, scenario: str | None = None) -> list[Row]:
        """Return the rows of a scenario, or of all. A figure that only we have has a dash for theirs."""
        found = []
        for name, figure in dict.fromkeys((s, f) for s, f, _ in self.values):
            ours, theirs = (self.values.get((name, figure, side), []) for side in (OURS, self.theirs))
            if scenario not in (None, name) or not ours:
                continue
            mine = statistics.median(ours)
            if not theirs:
                found.append(Row(name, figure, number(mine), "–", "–", "–"))
                continue
            other = statistics.median(theirs)
            pairs = [a / b for a, b in zip(ours, theirs, strict=False) if b] or [0.0]
            ratio, spread = mine / other if other else 0.0, f"{min(pairs):.2f} .. {max(pairs):.2f}"
            found.append(Row(name, figure, number(mine), number(other), f"{ratio:.2f}", spread))
        return found


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(results: Results, scenario: str) -> None:
    table = Table(title=scenario, title_justify="left")
    for column in ("figure", TITLES[OURS], TITLES[results.theirs], "ratio", "of single runs"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for row in results.rows(scenario):
        table.add_row(*row[1:])
    Console().print(table)
