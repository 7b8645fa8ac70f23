"""What a run found, and the page it makes of it.

Cells live in pytest's cache between runs, so that a run of a few tests renews its cells only; the page is written once every cell of
the table has a result. It holds no times and no addresses: two runs that find the same write the same page.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conform.card.clients import CLIENTS, TRAITS
from tests.conform.card.programs import PROGRAMS, Program
from tests.conform.card.scenarios import SCENARIOS, shows
from tests.conform.driver import Driver

OURS, THEIRS = "barnabas", "apache-kafka"
PASSED = "passed"
INTRODUCTION = """# Compatibility

What other people's clients and programs do on barnabas and on Apache Kafka {kafka}, as `make conform` last found each of them.
Each is taken from its registry and driven by a small program of ours (`tests/conform/drivers`) through the same scenarios on both
brokers. A scenario passes on barnabas when it ends well there **and** what the client saw is what it saw on Apache Kafka: offsets, records,
assignments, error codes.
"""


class Card:
    """The cells of all runs so far: `rows[row]["cells"][scenario][broker]` is "passed" or what went wrong."""

    def __init__(self, rows: dict[str, Any], kafka_version: str) -> None:
        self.rows = rows
        self.kafka_version = kafka_version
        self.asked: set[str] = set()
        self.begun: set[tuple[str, str, str]] = set()
        self.found: set[tuple[str, str]] = set()
        self.keep: Callable[[], None] = lambda: None

    def row(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.rows.setdefault(name, {})
        return found

    def unavailable(self, name: str, reason: str) -> None:
        self.rows[name] = {"unavailable": reason}

    def version(self, name: str, command: list[str]) -> None:
        """Ask the driver once a run which version of its library it has."""
        if name not in self.asked:
            self.asked.add(name)
            driver = Driver([*command, "127.0.0.1:1"], Path("/dev/null"))
            try:
                self.says(name, driver("version"))
                driver.close()
            finally:
                driver.kill()

    def says(self, name: str, version: str) -> None:
        self.row(name).pop("unavailable", None)
        self.row(name)["version"] = version

    def record(self, name: str, scenario: str, seen: Mapping[str, object]) -> None:
        """Keep a scenario's outcome: by broker an exception, or what was seen, which must be equal on both."""
        self.found.add((name, scenario))
        cells = self.row(name).setdefault("cells", {}).setdefault(scenario, {})
        for broker, outcome in seen.items():
            if isinstance(outcome, Exception):
                cells[broker] = (str(outcome).splitlines() or [type(outcome).__name__])[0][:200]
            elif (
                broker == OURS
                and THEIRS in seen
                and not isinstance(seen[THEIRS], Exception)
                and outcome != seen[THEIRS]
            ):
                cells[broker] = "saw something else than on Apache Kafka"
            else:
                cells[broker] = PASSED

    def step(self, name: str, scenario: str, broker: str, problem: str | None) -> None:
        """Add one test's outcome to a scenario that several tests make up: it passes when all of them do."""
        self.found.add((name, scenario))
        cells = self.row(name).setdefault("cells", {}).setdefault(scenario, {})
        if (name, scenario, broker) not in self.begun:
            self.begun.add((name, scenario, broker))
            cells[broker] = PASSED
        if problem is not None and cells[broker] == PASSED:
            cells[broker] = problem.splitlines()[0][:200]

    def merged_with(self, earlier: dict[str, Any]) -> dict[str, Any]:
        """The rows that another run may have kept meanwhile, with what this run found in their place."""
        merged = {name: {**row, "cells": dict(row.get("cells", {}))} for name, row in earlier.items()}
        for name, row in self.rows.items():
            if "unavailable" in row:
                merged[name] = row
                continue
            mine = {
                scenario: cells for scenario, cells in row.get("cells", {}).items() if (name, scenario) in self.found
            }
            if mine:
                kept = merged.get(name, {}).get("cells", {})
                merged[name] = {"version": row["version"], "cells": kept | mine}
        return merged

    def missing(self) -> list[str]:
        """The cells without a result on both brokers."""
        return [
            f"{name}: {scenario}"
            for name, scenarios in expected().items()
            if "unavailable" not in self.rows.get(name, {})
            for scenario in scenarios
            if not {OURS, THEIRS} <= self.rows.get(name, {}).get("cells", {}).get(scenario, {}).keys()
        ]

    def lines(self) -> list[str]:
        """Return a line for each client that was run, and one for each cell that failed."""
        found = []
        for name, row in self.rows.items():
            cells = row.get("cells", {})
            for broker in (OURS, THEIRS):
                outcomes = {scenario: each[broker] for scenario, each in cells.items() if broker in each}
                failed = {scenario: outcome for scenario, outcome in outcomes.items() if outcome != PASSED}
                if outcomes:
                    found.append(f"{name} on {broker}: {len(outcomes) - len(failed)} of {len(outcomes)}")
                found += [f"    {scenario}: {outcome}" for scenario, outcome in failed.items()]
        return found

    def page(self) -> str:
        """The whole of docs/compatibility.md."""
        parts = [
            INTRODUCTION.format(kafka=self.kafka_version),
            *self.summary(),
            *self.matrix(),
            *self.programs(),
            *self.notes(),
        ]
        return "\n".join(parts) + "\n"

    def passed(self, name: str, broker: str) -> str:
        scenarios = expected()[name]
        cells = self.rows[name]["cells"]
        return f"{sum(cells[one][broker] == PASSED for one in scenarios)} of {len(scenarios)}"

    def summary(self) -> list[str]:
        lines = [
            f"| client or program | version | language | barnabas | Apache Kafka {self.kafka_version} |",
            "|---|---|---|---|---|",
        ]
        for one in (*CLIENTS, *PROGRAMS):
            row = self.rows.get(one.name, {})
            if isinstance(one, Program) and not one.tests:
                lines.append(f"| {one.name} | {one.version} | {one.language} | | |")
            elif "unavailable" in row:
                lines.append(f"| {one.name} | not to be had: {row['unavailable']} | {one.language} | | |")
            else:
                results = " | ".join(self.passed(one.name, broker) for broker in (OURS, THEIRS))
                lines.append(f"| {one.name} | {row['version']} | {one.language} | {results} |")
        return lines

    def matrix(self) -> list[str]:
        there = [c for c in CLIENTS if "unavailable" not in self.rows[c.name]]
        lines = ["", "## Clients", "", "✓ as on Apache Kafka, ✗ not, · not something this client does (see below).", ""]
        lines += ["| scenario | " + " | ".join(c.name for c in there) + " |", "|---" * (len(there) + 1) + "|"]
        for scenario in SCENARIOS:
            marks = ["·" if scenario in c.without else self.mark(c.name, scenario) for c in there]
            lines.append(f"| {scenario} | " + " | ".join(marks) + " |")
        return [*lines, "", *(f"- **{scenario}**: {shows(scenario)}" for scenario in SCENARIOS)]

    def programs(self) -> list[str]:
        lines = ["", "## Programs", ""]
        for program in PROGRAMS:
            for scenario, what in program.scenarios.items():
                lines.append(f"- {self.mark(program.name, scenario)} **{program.name}, {scenario}**: {what}")
        return lines

    def mark(self, name: str, scenario: str) -> str:
        cells = self.rows[name]["cells"][scenario]
        if cells[OURS] == PASSED:
            return "✓"
        return "✗" if cells[THEIRS] == PASSED else "✗ (on both)"

    def notes(self) -> list[str]:
        lines = ["", "## What a client leaves out", ""]
        for client in CLIENTS:
            if "unavailable" in self.rows[client.name]:
                continue
            why: dict[str, list[str]] = {}
            for scenario, reason in client.without.items():
                why.setdefault(reason, []).append(scenario)
            told = [f"{', '.join(scenarios)}: {reason}" for reason, scenarios in why.items()]
            told += [TRAITS[trait] for trait in client.traits]
            told += [f"codecs here: {', '.join(client.codecs)}"] * (len(client.codecs) < 5)
            if told:
                lines.append(f"- **{client.name}**: " + "; ".join(told) + ".")
        failures = [
            f"- **{name}**, {scenario}, on {broker}: {outcome}"
            for name, scenarios in expected().items()
            if "unavailable" not in self.rows.get(name, {})
            for scenario in scenarios
            for broker, outcome in sorted(self.rows[name]["cells"][scenario].items())
            if outcome != PASSED
        ]
        return lines + (["", "## What failed", "", *failures] if failures else [])


class KeptCells:
    """The cells in a file between runs. Runs side by side take turns, and none reads half of what another writes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "cells.json"
        self.lock = folder / "lock"

    def read(self) -> dict[str, Any]:
        rows: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}
        return rows

    def merge(self, card: Card) -> None:
        """Write what the card's run found over what is kept, and give the card the whole."""
        with open(self.lock, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            card.rows = card.merged_with(self.read())
            written = self.file.with_suffix(".new")
            written.write_text(json.dumps(card.rows, indent=1))
            written.replace(self.file)


def expected() -> dict[str, list[str]]:
    """Every row with its scenarios, in the order of the page."""
    rows = {c.name: [s for s in SCENARIOS if s not in c.without] for c in CLIENTS}
    return rows | {p.name: list(p.scenarios) for p in PROGRAMS}
