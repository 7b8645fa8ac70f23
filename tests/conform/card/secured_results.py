"""The section of the page about TLS and logins: a table of clients and ways, kept in secured.tsv beside this file.

A run of one way renews the rows that it played, with the day; every run writes the section as the file has it, so that a run in plain text
keeps what those of other ways found.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tests.conform.card.clients import CLIENTS
from tests.conform.card.results import OURS, PASSED, THEIRS, Card, expected
from tests.conform.card.security import WAYS

FILE = Path(__file__).with_name("secured.tsv")
BOTH = "both"
HEADING = "\n## With TLS and logins\n"
INTRODUCTION = """
The same scenarios through a listener with TLS, with an authorizer: `SSL` asks for the client's certificate. Of each client, how many
scenarios of those played passed on barnabas and saw there what they saw on Apache Kafka, and on which day;
`make card ARGS="--security SASL_SSL/PLAIN"` renews a column.
"""


@dataclass(frozen=True)
class Found:
    """What one client found in one way.

    Attributes:
        brokers: `both`, or the name of the only one that was played on.
        passed: scenarios that passed there.
        played: of how many.
        day: in ISO form.
        why: what went wrong first, or why the client cannot; else empty.
    """

    client: str
    way: str
    brokers: str
    passed: int
    played: int
    day: str
    why: str = ""


def read(file: Path = FILE) -> dict[tuple[str, str], Found]:
    """Return what is kept, by client and way."""
    with file.open(newline="") as lines:
        rows = [
            Found(
                row["client"],
                row["way"],
                row["brokers"],
                int(row["passed"]),
                int(row["played"]),
                row["day"],
                row["why"],
            )
            for row in csv.DictReader(lines, delimiter="\t")
        ]
    return {(row.client, row.way): row for row in rows}


def write(found: Iterable[Found], file: Path = FILE) -> None:
    """Keep this, in the order of the tables."""
    clients, ways = [client.name for client in CLIENTS], list(WAYS)
    rows = sorted(found, key=lambda row: (clients.index(row.client), ways.index(row.way)))
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines, delimiter="\t", lineterminator="\n")
        writer.writerow(field.name for field in fields(Found))
        writer.writerows(map(astuple, rows))


def of_card(card: Card, way: str, day: str) -> list[Found]:
    """Return what the card of one way says of the clients that this run has played.

    Those scenarios count that were played on both brokers, in this run or in one before it; if there are none, those on barnabas alone.
    """
    found = []
    for client in CLIENTS:
        row = card.rows.get(client.name, {})
        if "unavailable" in row:
            found.append(Found(client.name, way, BOTH, 0, 0, day, f"cannot be installed: {row['unavailable']}"))
            continue
        cells = row.get("cells", {})
        if not any(name == client.name for name, _ in card.found):
            continue
        both = {scenario: each for scenario, each in cells.items() if {OURS, THEIRS} <= each.keys()}
        brokers = BOTH if both else OURS
        counted = both or {scenario: {OURS: each[OURS]} for scenario, each in cells.items() if OURS in each}
        failed = [
            f"{scenario}, on {broker}: {outcome}"
            for scenario, each in counted.items()
            for broker, outcome in sorted(each.items())
            if outcome != PASSED
        ]
        passed = sum(set(each.values()) == {PASSED} for each in counted.values())
        if counted:
            found.append(Found(client.name, way, brokers, passed, len(counted), day, (failed or [""])[0]))
    return found


def section(found: dict[tuple[str, str], Found]) -> str:
    """Return the page's section."""
    lines = ["| client | " + " | ".join(f"`{way}`" for way in WAYS) + " |", "|---" * (len(WAYS) + 1) + "|"]
    notes = []
    for client in CLIENTS:
        marks = []
        for way in WAYS:
            row = found.get((client.name, way))
            marks.append(_mark(row, len(expected()[client.name])))
            if row is not None and row.why:
                notes.append(f"- **{client.name}**, {way}: {row.why}")
        lines.append(f"| {client.name} | " + " | ".join(marks) + " |")
    return HEADING + INTRODUCTION + "\n" + "\n".join([*lines, *([""] * bool(notes)), *notes]) + "\n"


def _mark(row: Found | None, wanted: int) -> str:
    if row is None:
        return "not played"
    if not row.played:
        return "·"
    all_of_them = "" if row.played == wanted else f" (there are {wanted})"
    alone = "" if row.brokers == BOTH else f" on {row.brokers} alone"
    return f"{row.passed} of {row.played}{all_of_them}{alone}, {row.day}"


def with_section(page: str, found: dict[tuple[str, str], Found]) -> str:
    """Return the page with this section in place of the one that it has, or at its end."""
    return page.partition(HEADING)[0] + section(found)
