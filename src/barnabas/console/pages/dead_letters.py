"""Dead letters: `barnabas dlq list`, and for one topic their causes and `barnabas dlq show`.

A page reads the records, so it counts the first ones of a topic, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import click

from barnabas.cli.dead_letters import error_name, find_topics, is_dead_letter_name, opened, parse_filter
from barnabas.cli.dlq import Summary, listed_topics, oldest, shown_letters, summary_of
from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connection_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.listing import page_of
from barnabas.console.masked_letters import masked_letter, refuse_masked_filters
from barnabas.console.page import Field, Filter, Form, Page, Paging, Section, failed_section, section
from barnabas.protocol.errors import KafkaError
from barnabas.retries.headers import FailureHeaders
from barnabas.retries.redrive import DeadLetter
from barnabas.words.times import format_time_ms

COUNTED_MAX = 10_000
"""A page counts so many dead letters of a topic."""
_TOPICS_OF_A_PAGE = 20
_LETTERS_SHOWN = 50
_TITLE = "Dead letters"
_FILTER_HINT = "error=TimeoutError, topic=orders, key=k"


class _Listed(NamedTuple):
    summaries: list[Summary]
    cut: list[str]
    paging: Paging


class _Read(NamedTuple):
    """The dead letters of a topic: those that were counted and pass the filter; `is_cut` if there are more to count."""

    letters: list[DeadLetter]
    is_cut: bool


async def dead_letters(asked: Asked) -> Page:
    """Make the page: of all topics with a name as dead letters have it, or of `topic`, with a `filter`."""
    name = asked.query.get("topic", "")
    return await (_of_topic(asked, name) if name else _of_all(asked))


async def _of_all(asked: Asked) -> Page:
    part = asked.query.get("q", "")

    def find(admin: Admin) -> _Listed:
        names = [each.name for each in admin.list_topics() if is_dead_letter_name(each.name)]
        shown, paging = page_of(
            [each for each in names if part.lower() in each.lower()],
            asked.number("page", 1),
            lambda page: asked.link("dead-letters", q=part or None, page=page),
            _TOPICS_OF_A_PAGE,
        )
        read = {each: _read(asked, admin, each) for each in shown}
        summaries = [summary_of(each, found.letters) for each, found in read.items()]
        return _Listed(summaries, [each for each, found in read.items() if found.is_cut], paging)

    try:
        summaries, cut, paging = await asked.cluster.search(find)
    except (KafkaError, Failure) as error:
        return Page(_TITLE, [failed_section("dead_letters", _TITLE, error)], Filter(part))
    empty = (
        f"No dead-letter topic's name contains “{part}”."
        if part
        else "No topic is called NAME.dlq, NAME-dlq, NAME-dlt or dlq.NAME."
    )
    links = {"TOPIC": lambda name: asked.link("dead-letters", topic=name)}
    listed = section("dead_letters", _TITLE, listed_topics(summaries), links=links, empty=empty)
    return Page(_TITLE, [listed._replace(notes=[_cut(each) for each in cut])], Filter(part), paging)


def _cut(topic: str) -> str:
    return f"Only the first {COUNTED_MAX} records of {topic} are counted; `barnabas dlq list {topic}` counts all."


async def _of_topic(asked: Asked, name: str) -> Page:
    title = f"Dead letters in {name}"
    filters = Given({"filter": asked.query.get("filter", "")}).lines("filter")
    form = Form(
        [
            Field("topic", "Topic", name, is_required=True),
            Field(
                "filter", "Filters, a line each", asked.query.get("filter", ""), "lines", hint=_FILTER_HINT
            ),
        ]
    )  # fmt: skip
    try:
        refuse_masked_filters(asked.cluster.decoder.masks, name, filters)
        letters, is_cut = await asked.cluster.search(lambda admin: _read(asked, admin, name, tuple(filters)))
    except (BadForm, click.UsageError) as error:
        sentence = error.message if isinstance(error, click.UsageError) else str(error)
        return Page(title, [failed_section("causes", "Why they failed", Failure(sentence))], form=form)
    except (KafkaError, Failure) as error:
        return Page(title, [failed_section("causes", "Why they failed", error, f"topic {name}")], form=form)
    empty = "No dead letter passes the filters." if filters else "The topic has no dead letter."
    causes = section("causes", "Why they failed", causes_of(letters), links={"SOURCE": asked.topic_link}, empty=empty)
    if letters and all(each.failure == FailureHeaders() for each in letters):
        causes = causes._replace(notes=["These records have no dead-letter headers: it may be an ordinary topic."])
    if is_cut:
        causes = causes._replace(notes=[*causes.notes, _cut(name)])
    shown = _shown(asked, oldest(letters, _LETTERS_SHOWN), len(letters))
    return Page(title, [causes, *([shown] if letters else [])], form=form)


def causes_of(letters: Sequence[DeadLetter]) -> Found:
    """Return how many dead letters each error and source topic has, the most frequent first."""
    records: Counter[tuple[str, str | None]] = Counter()
    left: Counter[tuple[str, str | None]] = Counter()
    first: dict[tuple[str, str | None], int] = {}
    for each in letters:
        cause = error_name(each.failure), each.failure.topic
        records[cause] += 1
        left[cause] += not each.is_redriven
        if each.record.timestamp_ms >= 0:
            first[cause] = min(first.get(cause, each.record.timestamp_ms), each.record.timestamp_ms)
    rows = [
        (*cause, count, left[cause], format_time_ms(first[cause]) if cause in first else None)
        for cause, count in records.most_common()
    ]
    return found_rows(("ERROR", "SOURCE", "RECORDS", "NOT-REDRIVEN", "OLDEST"), rows)


def _shown(asked: Asked, letters: Sequence[DeadLetter], count: int) -> Section:
    found = shown_letters([masked_letter(asked.cluster.decoder, each) for each in letters])
    made = section("dead_letters", "The oldest", found)
    # The cell has the number alone; its page needs the partition too.
    (grid,) = made.grids
    at = list(grid.columns).index("OFFSET")
    rows = [
        [
            cell._replace(link=_record_link(asked, letter)) if number == at else cell
            for number, cell in enumerate(row)
        ]
        for row, letter in zip(grid.rows, letters, strict=True)
    ]  # fmt: skip
    return made._replace(
        grids=[grid._replace(rows=rows)], sentence=f"{len(letters)} of {counted(count, 'dead letter')}."
    )


def _record_link(asked: Asked, letter: DeadLetter) -> str:
    at = letter.record
    return asked.link("record", topic=at.topic, partition=at.partition, offset=at.offset)


def _read(asked: Asked, admin: Admin, name: str, filters: tuple[str, ...] = ()) -> _Read:
    """Read the first dead letters of a topic.

    Raises:
        UsageError: a filter is not one.
        KafkaError: the topic does not exist, or no broker answers.
        Failure: the library cannot read it.
    """
    chosen = parse_filter(filters)
    (topic,) = find_topics(admin, [name])
    with opened(connection_of(admin), admin) as reader:
        found: Iterator[DeadLetter] = reader.read(topic, reader.redriven(topic))
        letters = list(islice(found, COUNTED_MAX))
        is_cut = next(found, None) is not None
    return _Read([each for each in letters if chosen(each)], is_cut)
