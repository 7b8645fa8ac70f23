"""docs/benchmarks.md: a section for each comparison, then the notes.

A run writes the sections that it has figures for, and leaves the others as they are, each with the machine it ran on.
"""

from __future__ import annotations

import datetime
import os
import platform
import sysconfig
from importlib.metadata import version
from pathlib import Path

import apache_kafka
import confluent_kafka
from tests.spark.connector import CONNECTOR_VERSION

from bench.report import CONNECTOR, OURS, THEIR_CLUSTER, THEIRS, TITLES, Results

SECTIONS = {
    THEIRS: "## Beside Apache Kafka",
    THEIR_CLUSTER: "## Three nodes, beside three nodes of Apache Kafka",
    CONNECTOR: "## In Spark, beside Spark's own Kafka connector",
}
_OPENING = """# Benchmarks

Written by `make bench`. Both sides of a row share the machine's cores with their load, so only the ratios mean anything.
A ratio is ours divided by theirs, of the medians of alternating runs. The last column shows the lowest and the highest
ratio of one pair of runs.
"""


def write_page(page: Path, measured: list[Results], runs: int) -> None:
    """Write the page: new sections for what was measured, the old ones for the rest, and the notes beside it."""
    old = page.read_text() if page.exists() else ""
    new = {each.theirs: section(each, runs) for each in measured if each.values}
    parts = [_OPENING] + [new.get(side) or section_of(old, title) for side, title in SECTIONS.items()]
    notes = page.with_name("benchmarks-notes.md")
    if notes.exists():
        parts.append(notes.read_text())
    page.write_text("\n\n".join(part.strip() for part in parts if part) + "\n")


def section_of(page: str, title: str) -> str:
    """Return a section of a page with its title, or an empty text."""
    _, found, rest = page.partition(f"{title}\n")
    return found + rest.partition("\n## ")[0]


def section(results: Results, runs: int) -> str:
    theirs = TITLES[results.theirs]
    lines = [
        SECTIONS[results.theirs],
        "",
        *machine(),
        *(spark_versions() if results.theirs == CONNECTOR else broker_versions()),
        f"- medians of {runs} runs" if runs > 1 else "- one run of each row",
        "",
        f"| scenario | figure | {TITLES[OURS]} | {theirs} | ratio | single runs |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for scenario, figure, mine, other, ratio, spread in results.rows():
        bold = ratio if ratio == "–" else f"**{ratio}**"
        lines.append(f"| {scenario} | {figure} | {mine} | {other} | {bold} | {spread} |")
    return "\n".join(lines)


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
    ]


def broker_versions() -> list[str]:
    return [
        f"- Apache Kafka {apache_kafka.VERSION}, heap 1 GiB, G1; warmed up before the first figure",
        f"- librdkafka {confluent_kafka.libversion()[0]} through confluent-kafka, and Kafka's own producer-perf tool",
    ]


def spark_versions() -> list[str]:
    return [
        f"- PySpark {version('pyspark')}, `local[2]` with its default memory; pyarrow {version('pyarrow')}",
        f"- Spark's Kafka connector {CONNECTOR_VERSION}, in the same session, on the same barnabas broker",
        "- warmed up: the first runs of both sides are not counted",
    ]
