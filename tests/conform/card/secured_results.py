"""The section of the page about TLS and logins: tables of clients, scenarios and ways, kept in secured.tsv beside this file.

The file has a row for each scenario that a client has played in a way; what has no row was not played. A run of one way renews the rows of
what it played, with the day; every run writes the section as the file has it, so that a run in plain text keeps what those of other ways
found.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tests.conform.card.clients import CLIENTS, Client
from tests.conform.card.results import OURS, PASSED, THEIRS, Card, expected
from tests.conform.card.scenarios import SCENARIOS
from tests.conform.card.security import WAYS, Way

FILE = Path(__file__).with_name("secured.tsv")
HEADING = "\n## With TLS and logins\n"
INTRODUCTION = """
The same scenarios through a listener with TLS, with an authorizer: `SSL` asks for the client's certificate, `OAUTHBEARER` takes signed
tokens of a token server, `token` is a delegation token. A scenario passes when it ends well on both brokers and the client saw on barnabas
what it saw on Apache Kafka. What the tables do not count as played is not known to work.
`make card ARGS="--security SASL_SSL/PLAIN"` plays a column; with `-k codecs` only that scenario.

Of each client, how many of the scenarios played passed, and how many it has:
"""
WHICH = """
Which scenarios were played, in which ways, and by how many of the clients that can:
"""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Found:
    """What one client found in one scenario of one way.

    Attributes:
        scenario: "" if the client could not be had; `barnabas` says why.
        barnabas: `passed`, or what went wrong.
        apache_kafka: the same; "" if it was not played there.
        day: in ISO form.
    """

    client: str
    way: str
    scenario: str
    barnabas: str
    apache_kafka: str
    day: str

    @property
    def has_passed(self) -> bool:
        return self.barnabas == self.apache_kafka == PASSED


Results = Mapping[Key, Found]


def read(file: Path = FILE) -> Results:
    """Return what is kept, by client, way and scenario."""
    with file.open(newline="") as lines:
        rows = [Found(**row) for row in csv.DictReader(lines, delimiter="\t")]
    return _by_key(rows)


def _by_key(rows: Iterable[Found]) -> Results:
    return {(row.client, row.way, row.scenario): row for row in rows}


def write(results: Results, file: Path = FILE) -> None:
    """Keep this, in the order of the tables."""
    clients, ways, scenarios = [client.name for client in CLIENTS], list(WAYS), ["", *SCENARIOS]
    order = sorted(results, key=lambda key: (clients.index(key[0]), ways.index(key[1]), scenarios.index(key[2])))
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines, delimiter="\t", lineterminator="\n")
        writer.writerow(field.name for field in fields(Found))
        writer.writerows(astuple(results[key]) for key in order)


def of_card(card: Card, way: str, day: str) -> list[Found]:
    """Return what this run has found in one way."""
    found = []
    for client in CLIENTS:
        row = card.rows.get(client.name, {})
        if "unavailable" in row:
            found.append(Found(client.name, way, "", f"cannot be installed: {row['unavailable']}", "", day))
        for scenario, cells in row.get("cells", {}).items():
            if (client.name, scenario) in card.found:
                found.append(Found(client.name, way, scenario, cells.get(OURS, ""), cells.get(THEIRS, ""), day))
    return found


def renewed(kept: Results, found: Iterable[Found]) -> Results:
    """Return what is kept with what a run has found in its place; a client that could not be had once is there when it has played."""
    newer = _by_key(found)
    there = {(client, way) for client, way, scenario in newer if scenario}
    return {key: row for key, row in kept.items() if key[2] or key[:2] not in there} | dict(newer)


def section(results: Results) -> str:
    """Return the page's section."""
    lines = [HEADING + INTRODUCTION, *_clients(results), WHICH, *_scenarios(results), "", *_notes(results)]
    return "\n".join(lines).rstrip() + "\n"


def _head(first: str) -> list[str]:
    return [f"| {first} | " + " | ".join(f"`{way}`" for way in WAYS) + " |", "|---" * (len(WAYS) + 1) + "|"]


def _clients(results: Results) -> list[str]:
    lines = _head("client")
    for client in CLIENTS:
        marks = [_mark(client, way, results) for way in WAYS.values()]
        lines.append(f"| {client.name} | " + " | ".join(marks) + " |")
    return lines


def _mark(client: Client, way: Way, results: Results) -> str:
    rows = [row for row in results.values() if (row.client, row.way) == (client.name, way.name) and row.scenario]
    if client.why_not(way) or (client.name, way.name, "") in results:
        return "·"
    if not rows:
        return "not played"
    passed, there = sum(row.has_passed for row in rows), len(expected()[client.name])
    return f"{passed} of {len(rows)} played" + ("" if len(rows) == there else f", there are {there}")


def _scenarios(results: Results) -> list[str]:
    lines = _head("scenario")
    for scenario in SCENARIOS:
        marks = []
        for way in WAYS.values():
            can = [each.name for each in CLIENTS if scenario in expected()[each.name] and not each.why_not(way)]
            missing = [name for name in can if (name, way.name, scenario) not in results]
            count = f"{len(can) - len(missing)} of {len(can)}"
            marks.append("not played" if missing == can else count + (f"; not {', '.join(missing)}" if missing else ""))
        lines.append(f"| {scenario} | " + " | ".join(marks) + " |")
    return lines


def _notes(results: Results) -> list[str]:
    notes = []
    for client in CLIENTS:
        if whys := sorted({why for way in WAYS.values() if (why := client.why_not(way))}):
            notes.append(f"- **{client.name}** {'; '.join(whys)}.")
    for row in results.values():
        where = f"- **{row.client}**, {row.way}"
        if not row.scenario:
            notes.append(f"{where}: {row.barnabas}")
        elif row.barnabas != PASSED:
            notes.append(f"{where}, {row.scenario}, on {OURS}: {row.barnabas or 'not played'}")
        elif row.apache_kafka != PASSED:
            notes.append(f"{where}, {row.scenario}, on {THEIRS}: {row.apache_kafka or 'not played'}")
    days = sorted({row.day for row in results.values()})
    return [*notes, *([f"\nPlayed from {days[0]} to {days[-1]}."] if days else [])]


def with_section(page: str, results: Results) -> str:
    """Return the page with this section in place of the one that it has, or at its end."""
    return page.partition(HEADING)[0] + section(results)
