"""The records of a topic: found by offset, time, key, header and content, a page of them; `barnabas consume` reads the same.

The address is the search. Its next page has a cursor, so it is complete in the end, or says what it has not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.cli.output import Table
from barnabas.cli.wording import listed
from barnabas.client.admin import Admin
from barnabas.client.partitioner import LIBRARY_DEFAULTS, PARTITIONERS
from barnabas.console.asked import Asked
from barnabas.console.page import Field, Form, Link, Page, Section, failed_section, grid
from barnabas.console.records import grid_of, object_of
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.guess import Guess, guess_of, guessed
from barnabas.console.search.query import BadQuery, Query
from barnabas.console.search.search import Outcome, run
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoder import FORMATS
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.requirements import NotInstalled

_SUGGESTIONS_MAX = 500
_PROGRESS_COLUMNS = ("PARTITION", "FROM", "TO", "READ", "RECORDS", "CONTROL", "REMOVED", "DAMAGED")
_HEADING = "Records"


class _Answer(NamedTuple):
    """A page of a search, and the formats that its filter saw.

    Attributes:
        query: with formats for what the page shows.
    """

    query: Query
    outcome: Outcome
    guess: Guess


async def messages(asked: Asked) -> Page:
    """Make the page of a search; its parameters are those of `Query`, `details`, `live`, and a cursor to go on."""
    topics = await _topics(asked)
    form = form_of(asked, () if isinstance(topics, KafkaError) else topics)
    name = asked.query.get("topic", "")
    if not name:
        return Page("Messages", [_topic_section(topics)], form=form)
    events = None
    if asked.query.get("live") == "1":
        events = asked.link("messages/events", **{**asked.query, "live": None, "cursor": None})
    try:
        sections = await _sections(asked)
    except KafkaError as error:
        is_missing = error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
        failed = failed_section("messages", _HEADING, error, f"topic {name}")
        return Page(f"Messages of {name}", [failed], events=events, is_missing=is_missing, form=form)
    return Page(f"Messages of {name}", sections, events=events, form=form)


def _topic_section(topics: list[str] | KafkaError) -> Section:
    if isinstance(topics, KafkaError):
        return failed_section("topics", "Topics", topics)
    return Section("topics", "Topics", topics, sentence="Choose a topic." if topics else "There is no topic yet.")


async def _sections(asked: Asked) -> list[Section]:
    """Return the sections of a search: its records, and what was read.

    Raises:
        KafkaError: the topic does not exist, or no broker answers.
    """
    try:
        query = Query.of(asked.query)
        text = asked.query.get("cursor", "")
        cursor = Cursor.of(text) if text else None
        answer = await asked.cluster.search(lambda admin: _answer(admin, asked, query, cursor))
    except BadQuery as error:
        return [bad_section(str(error))]
    except NotInstalled as error:
        return [bad_section(f"{error.sentence}: {error.command}")]
    read = read_section(asked, answer.query, answer.outcome, answer.guess)
    return [*record_sections(asked, answer.query, answer.outcome), read]


def _answer(admin: Admin, asked: Asked, query: Query, cursor: Cursor | None) -> _Answer:
    decoder = asked.cluster.decoder
    before = guessed(admin, query, decoder, asked.now_ms) if query.filter else None
    outcome = run(admin, query if before is None else before.query, decoder, asked.now_ms, cursor)
    shown = guess_of(query if before is None else before.query, decoder, outcome.found)
    return _Answer(shown.query, outcome, shown if before is None else before)


def bad_section(sentence: str) -> Section:
    """Return a section that says why a search cannot begin."""
    return Section("messages", _HEADING, {"error": sentence}, sentence=sentence, is_failed=True)


def record_sections(asked: Asked, query: Query, outcome: Outcome) -> list[Section]:
    """Return the section with the records that were found."""
    data = [object_of(each, query, asked.cluster.decoder) for each in outcome.found]
    before = f" after {outcome.found_before} on the pages before" if outcome.found_before else ""
    count = len(outcome.found)
    sentence = f"{count} record{'' if count == 1 else 's'}{before}, {query.order} first."
    if not count:
        sentence = f"No record was found{' on this page' if outcome.cursor else ''}."
    details = asked.query.get("details") == "1"
    shows_states = details or query.control or query.isolation_level != "read_committed"
    grids = [grid_of(asked, outcome.found, query, details=shows_states)] if outcome.found else []
    return [Section("messages", _HEADING, data, grids, sentence, links=_links(asked, query, outcome))]


def _links(asked: Asked, query: Query, outcome: Outcome) -> list[Link]:
    kept = {"details": asked.query.get("details") or None}
    links = []
    if outcome.cursor is not None:
        fixed = replace(query, since=outcome.query.since, until=outcome.query.until)
        address = asked.link("messages", **fixed.parameters(), **kept, cursor=outcome.cursor.text())
        links.append(Link("Go on", address))
    if asked.query.get("cursor"):
        links.append(Link("From the beginning", asked.link("messages", **query.parameters(), **kept)))
    links.append(Link("All as JSON lines", asked.link("messages/export.jsonl", **query.parameters())))
    links.append(Link("All as CSV", asked.link("messages/export.csv", **query.parameters())))
    links.append(Link("All as Parquet", asked.link("messages/export.parquet", **query.parameters())))
    return links


def read_section(asked: Asked, query: Query, outcome: Outcome, guess: Guess) -> Section:
    """Return the section that says what was read, and what not, and how the formats were found."""
    verdict = verdict_of(outcome)
    newest = query.is_newest_first
    rows = [
        (
            each.partition,
            each.begin if each.is_known else None,
            each.end if each.is_known else None,
            each.passed(newest_first=newest) if each.is_known else None,
            each.records,
            each.control,
            each.removed,
            each.damaged,
        )
        for each in outcome.spans
    ]
    table = Table(_PROGRESS_COLUMNS, rows)
    line = query.consume_line()
    notes = list(verdict.sentences[1:])
    if said := guess.sentence():
        notes.append(said)
    if query.partitioner and len(outcome.spans) == 1:
        notes.append(
            f"Only partition {outcome.spans[0].partition} is read, where {query.partitioner} puts this key among the topic's"
            " partitions of today."
        )
    mask = asked.cluster.decoder.masks.of(query.topic)
    if mask is not None:
        notes.append(f"This console masks {', '.join(mask.fields)}; filters see the masked record.")
    if without := query.beyond_consume():
        notes.append(f"The command has no option for {listed(without)}, and prints more.")
    data = {
        **verdict.data(),
        "masked": [] if mask is None else list(mask.fields),
        "formats": guess.data(),
        "stopped": outcome.stop.name.lower(),
        "partitions": table.objects(),
        "query": query.parameters(),
        "consume": line,
        "next_cursor": None if outcome.cursor is None else outcome.cursor.text(),
    }
    grids = [grid(table, "Read by partition", {})] if rows else []
    return Section("read", "What was read", data, grids, verdict.sentences[0], notes=notes, command=line)


async def _topics(asked: Asked) -> list[str] | KafkaError:
    def names(admin: Admin) -> list[str]:
        return sorted(each.name for each in admin.list_topics(internal=True))[:_SUGGESTIONS_MAX]

    try:
        return await asked.cluster.ask(names)
    except KafkaError as error:
        return error


def form_of(asked: Asked, topics: Sequence[str]) -> Form:
    """Return the form of a search, filled in as the address says."""

    def text(name: str, label: str, hint: str = "") -> Field:
        return Field(name, label, asked.query.get(name, ""), hint=hint)

    def choice(name: str, label: str, choices: Sequence[tuple[str, str]]) -> Field:
        return Field(name, label, asked.query.get(name, ""), "choice", choices)

    def box(name: str, label: str) -> Field:
        return Field(name, label, "1" if asked.query.get(name) == "1" else "", "box")

    formats = [("", "as it fits"), *((each, each) for each in FORMATS)]
    partitioners = [("", "read all partitions")]
    for each in PARTITIONERS:
        users = LIBRARY_DEFAULTS.get(each)
        partitioners.append((each, f"{each} ({users})" if users else each))
    return Form(
        fields=[
            Field("topic", "Topic", asked.query.get("topic", ""), suggestions=topics),
            text("filter", "Filter (CEL)", 'value.amount > 100 && key != ""'),
            text("key", "Key", "the whole key"),
            text("offset", "Offsets", "start, -100, 5:7, @-1h"),
            choice("order", "Order", [("", "newest first"), ("oldest", "oldest first")]),
            box("live", "Live"),
        ],
        more=[
            text("partitions", "Partitions", "0,3"),
            choice("partitioner", "Partition of the key", partitioners),
            choice("key_encoding", "The key is written as", [("", "text"), ("hex", "hex"), ("base64", "base64")]),
            text("header", "Header", "NAME or NAME:VALUE"),
            text("since", "Not before", "-1h, 2026-11-21T10:00:00"),
            text("until", "Before", "-5m"),
            text("limit", "Records on a page", "50"),
            choice("key_as", "Keys are", formats),
            choice("value_as", "Values are", formats),
            choice(
                "isolation_level",
                "Transactions",
                [("", "committed only"), ("read_uncommitted", "aborted and open ones too")],
            ),
            box("control", "Control records too"),
            box("details", "Producer, codec, state"),
        ],
        button="Search",
    )
