"""A page as a value: sections with the tables of commands, which become HTML or JSON.

What a cluster cannot answer is one sentence in the place of its section; the other sections stay. Everything in a table may come from
outside: each cell is made printable, cut at 64 KB, and escaped by the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.output import Found, Table, text
from barnabas.client.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.chart import Chart
from barnabas.console.rebalance_timeline import Timeline
from barnabas.console.topology_picture import TopologyPicture
from barnabas.protocol.errors import KafkaError

CELL_CHARACTERS_MAX = 65_536
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_GOOD = frozenset(("serving", "Stable", "leader"))
_BAD = frozenset(("fenced", "silent", "hanging", "Dead", "STOP", "STALL"))

ColumnLinks = Mapping[str, Callable[[str], str]]
"""By column, the address of the page about a value of it."""


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        link: the address of the page about it; None without one.
        is_number: it stands to the right.
        is_time: it is a point in time in UTC.
        mark: `good` or `bad`, for a word that says so itself; empty otherwise.
    """

    text: str
    link: str | None = None
    is_number: bool = False
    is_time: bool = False
    mark: str = ""


class Grid(NamedTuple):
    """A table for people: cells under column names; a vertical one has one row, and is shown as a list of names and values."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_vertical: bool


class Link(NamedTuple):
    """An address and its words."""

    words: str
    address: str


class Section(NamedTuple):
    """A part of a page.

    Attributes:
        key: the name of its data in JSON, and its anchor.
        data: for programs; an object with `error` if the cluster could not answer.
        sentence: in the place of tables, or above them.
        is_failed: the sentence says why the data is missing.
        notes: more sentences, a line each.
        command: a line to type that does the same.
        written: text in the form in which it was written, lines and all.
        links: below everything else.
        chart: a picture, with its points as a table that is folded away.
        timeline: a picture of rebalances, whose facts are in the tables.
        topology: a picture of a Kafka Streams application, whose facts are in the tables.
    """

    key: str
    heading: str
    data: object
    grids: Sequence[Grid] = ()
    sentence: str | None = None
    is_failed: bool = False
    notes: Sequence[str] = ()
    command: str | None = None
    written: str | None = None
    links: Sequence[Link] = ()
    chart: Chart | None = None
    timeline: Timeline | None = None
    topology: TopologyPicture | None = None


class Field(NamedTuple):
    """A field of a form.

    Attributes:
        kind: `text`, `choice`, `box`, `lines`, `file` or `secret`.
        value: what is filled in; of a box `1` if it is ticked.
        choices: values and their words.
        hint: an example.
        suggestions: values to choose from, or another one.
        is_required: it may not stay empty.
        is_private: the audit log has its length alone.
    """

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    hint: str = ""
    suggestions: Sequence[str] = ()
    is_required: bool = False
    is_private: bool = False


class Form(NamedTuple):
    """A form that asks for another page.

    Attributes:
        more: fields that are folded away, unless one of them is filled in.
    """

    fields: Sequence[Field]
    more: Sequence[Field] = ()
    button: str = "Show"

    @property
    def is_unfolded(self) -> bool:
        """Whether a field that is otherwise folded away is filled in."""
        return any(each.value for each in self.more)


class Filter(NamedTuple):
    """A form that chooses what a list has: text in names, and a box to tick.

    Attributes:
        box: the parameter and the words of the box; None without one.
    """

    text: str
    box: tuple[str, str] | None = None
    is_ticked: bool = False


class Paging(NamedTuple):
    """Which part of a list is shown; pages count from 1."""

    page: int
    pages: int
    total: int
    previous: str | None
    following: str | None


class Page(NamedTuple):
    """A page about a cluster.

    Attributes:
        events: the address of a stream of new sections; None if the page stands still.
        is_missing: the name that the page is about does not exist.
        form: asks for another page like this one.
        seen_ms: when the cluster said so, in epoch milliseconds; None if it was asked for this page.
    """

    title: str
    sections: Sequence[Section]
    filter: Filter | None = None
    paging: Paging | None = None
    events: str | None = None
    is_missing: bool = False
    form: Form | None = None
    seen_ms: int | None = None

    def data(self) -> dict[str, object]:
        """Return the page for programs."""
        data = {each.key: each.data for each in self.sections}
        if self.paging is not None:
            data |= {"page": self.paging.page, "pages": self.paging.pages, "count": self.paging.total}
        return data if self.seen_ms is None else {**data, "seen_ms": self.seen_ms}


def section(
    key: str,
    heading: str,
    found: Found,
    *,
    links: ColumnLinks | None = None,
    captions: Sequence[str] = (),
    empty: str | None = None,
) -> Section:
    """Return a section with a command's result.

    Args:
        captions: of its tables; the heading for those without one.
        empty: the sentence in the place of tables without rows.
    """
    if empty is not None and not any(table.rows for table in found.tables):
        return Section(key, heading, found.data, sentence=empty)
    named = [*captions, *[heading] * len(found.tables)]
    grids = [grid(table, caption, links or {}) for table, caption in zip(found.tables, named, strict=False)]
    return Section(key, heading, found.data, grids)


def failed_section(key: str, heading: str, error: KafkaError | Failure, subject: str | None = None) -> Section:
    """Return a section that says why the cluster has not answered.

    Args:
        subject: the thing in question, for messages that do not name it.
    """
    sentence = sentence_of(error, subject)
    return Section(key, heading, {"error": sentence}, sentence=sentence, is_failed=True)


def sentence_of(error: KafkaError | Failure, subject: str | None = None) -> str:
    """Return an error as the commands print it."""
    if isinstance(error, ClientError):
        subject = None  # The cluster does not answer, whatever the question is about.
    failure = error if isinstance(error, Failure) else failure_of(error, subject)
    words = failure.format_message()
    return f"{words[:1].upper()}{words[1:]}."


async def asked_section(
    cluster: AskedCluster,
    key: str,
    heading: str,
    question: Callable[[Admin], Found],
    *,
    links: ColumnLinks | None = None,
    captions: Sequence[str] = (),
    empty: str | None = None,
    subject: str | None = None,
) -> Section:
    """Ask a cluster, and return a section: the answer, or the sentence that says why the cluster did not answer.

    `section` describes the arguments.
    """
    try:
        found = await cluster.ask(question)
    except (KafkaError, Failure) as error:
        return failed_section(key, heading, error, subject)
    return section(key, heading, found, links=links, captions=captions, empty=empty)


def grid(table: Table, caption: str, links: ColumnLinks) -> Grid:
    """Return a command's table for a page."""
    rows = [
        [_cell(column, value, links) for column, value in zip(table.columns, row, strict=True)] for row in table.rows
    ]
    return Grid(table.title or caption, table.columns, rows, table.vertical)


def _cell(column: str, value: object, links: ColumnLinks) -> Cell:
    words = text(value)
    if len(words) > CELL_CHARACTERS_MAX:
        words = f"{words[:CELL_CHARACTERS_MAX]}… (the first {CELL_CHARACTERS_MAX} of {len(words)} characters)"
    link = links[column](value) if column in links and isinstance(value, str) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    mark = "good" if words in _GOOD else "bad" if words in _BAD else ""
    if column == "HEALTHY":
        mark = "good" if value else "bad"
    return Cell(words, link, is_number, _TIME.fullmatch(words) is not None, mark)
