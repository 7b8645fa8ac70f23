"""From runs to a table of medians and ratios, and the page that keeps them."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import sysconfig
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import apache_kafka
import confluent_kafka
from rich.console import Console
from rich.table import Table

OURS, THEIRS = "barnabas", "apache-kafka"


class Results:
    """Every figure of every run: (scenario, figure, broker) → values."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def add(self, scenario: str, broker: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.values[scenario, name, broker].append(value)

    def rows(self, scenarios: list[str] | None = None) -> list[tuple[str, str, float, float, float, float, float]]:
        """Return (scenario, figure, our median, their median, ratio of medians, lowest, highest ratio of paired runs)."""
        found = []
        for scenario, figure in dict.fromkeys((s, f) for s, f, _ in self.values):
            ours, theirs = self.values[scenario, figure, OURS], self.values[scenario, figure, THEIRS]
            if (scenarios is None or scenario in scenarios) and ours and theirs:
                mine, other = statistics.median(ours), statistics.median(theirs)
                pairs = [a / b for a, b in zip(ours, theirs, strict=False) if b]
                found.append((scenario, figure, mine, other, mine / other if other else 0.0, min(pairs), max(pairs)))
        return found


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(results: Results, scenarios: list[str]) -> None:
    table = Table(title=scenarios[0], title_justify="left")
    for column in ("figure", "barnabas", "Apache Kafka", "ratio", "of single runs"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for _, figure, mine, other, ratio, low, high in results.rows(scenarios):
        table.add_row(figure, number(mine), number(other), f"{ratio:.2f}", f"{low:.2f} .. {high:.2f}")
    Console().print(table)


def interpreter_build() -> str:
    """Return compiler and optimisations of this Python, which the broker runs on too: PGO alone saves 5 to 8 % of CPU."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    pgo = "with" if "--enable-optimizations" in arguments else "without"
    lto = "with" if "--with-lto" in arguments else "without"
    return f"{platform.python_compiler()}, {pgo} profile-guided optimisation, {lto} link-time optimisation"


def machine() -> list[str]:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in processors if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}"
    return [
        f"- {datetime.date.today()}; {os.cpu_count()} cores ({model}), {memory:.0f} GiB, {system}",
        f"- barnabas {version('barnabas')} on uvloop {version('uvloop')}",
        f"- Python {platform.python_version()} ({interpreter_build()})",
        f"- Apache Kafka {apache_kafka.VERSION}, heap 1 GiB, G1; warmed up before the first figure",
        f"- librdkafka {confluent_kafka.libversion()[0]} through confluent-kafka, and Kafka's own producer-perf tool",
    ]


def write_page(results: Results, path: Path, runs: int) -> None:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Each broker shares the machine's cores with its load, so only the ratios mean anything.",
        f"A ratio is ours divided by Apache Kafka's: medians of {runs} alternating runs. The last column shows the lowest",
        "and the highest ratio of one pair of runs.",
        "",
        *machine(),
        "",
        "| scenario | figure | barnabas | Apache Kafka | ratio | single runs |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for scenario, figure, mine, other, ratio, low, high in results.rows():
        lines.append(
            f"| {scenario} | {figure} | {number(mine)} | {number(other)} | **{ratio:.2f}** | {low:.2f} .. {high:.2f} |"
        )
    notes = path.with_name("benchmarks-notes.md")
    if notes.exists():
        lines += ["", notes.read_text().strip()]
    path.write_text("\n".join(lines) + "\n")
