"""One SQL statement over topics, run by DuckDB inside this process.

A topic is a table under its name. Each word of the statement that is the name of a topic makes this topic a table, so a
column or an alias that has a topic's name costs a question to the cluster, and no more.

- The offsets of all these topics are fixed together, before the statement runs. A table that the statement names twice
  is fetched twice, and has the same records both times.
- DuckDB passes on which columns it needs and how it filters them (`dataset`). Rows flow through it in pieces; what a
  statement must collect, such as groups or a sort, DuckDB keeps, and moves to a temporary folder if memory is short.
- SQL does not tell `Orders` from `orders`. Of two topics that differ by case alone a statement can name one, exactly.
- Times are in UTC.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from barnabas.arrow.dataset import RecordsDataset
from barnabas.arrow.positions import Place
from barnabas.arrow.read import fixed, reading_options
from barnabas.arrow.records import Records
from barnabas.spark.source.option_words import OptionWords
from barnabas.words.requirements import needed_by

with needed_by("barnabas sql", "sql"):
    import duckdb

SQL_WORDS = OptionWords(
    starting="--from",
    ending="--to",
    patience="--timeout-ms",
    uncommitted="--isolation-level read_uncommitted",
    skips="",  # a statement never continues without them
    gone=(
        "Retention or an administrator removed them, or the topic was created again; --from earliest begins where the log "
        "begins now."
    ),
)
# `count(*)` reads the first column, so the first one is cheap.
COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers", "topic", "timestampType")
KINDS = ("text", "json", "binary")

_WORD = re.compile(r'"((?:[^"]|"")+)"|\'([^\']+)\'|([\w$]+)')
_LOOK_SECONDS = 0.1

_MISSING = re.compile(r'Table with name "?(.+?)"? does not exist')


class StatementError(Exception):
    """DuckDB rejected the statement, or failed; the message is one sentence for the user."""


class NoSuchTable(StatementError):
    """The statement names a table that is no topic.

    Attributes:
        name: the name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"topic {name} does not exist")


class TopicQuery:
    """A statement that runs; use it in a `with` block.

    Args:
        statement: SQL.
        names: the topics that exist.
        bootstrap, isolation, timeout_ms, security: as for `barnabas.read`.
        from_, to: where each topic begins and ends.
        key, value: `text` for UTF-8, `json` for text of type JSON, `binary`.

    Raises:
        StatementError: the statement is not valid.
        ValueError, KafkaError, QueryError: as for `barnabas.read`.
    """

    def __init__(
        self,
        statement: str,
        names: Iterable[str],
        *,
        bootstrap: str,
        from_: Place = "earliest",
        to: Place = "latest",
        key: str = "text",
        value: str = "text",
        isolation: str = "read_committed",
        timeout_ms: int = 30_000,
        security: Mapping[str, str] | None = None,
    ) -> None:
        self._failures: list[Exception] = []
        self._thread = ThreadPoolExecutor(1, "barnabas-sql")
        self._kinds = {"key": key, "value": value}
        self._spilled = tempfile.TemporaryDirectory(prefix="barnabas-sql-", ignore_cleanup_errors=True)
        self._connection = duckdb.connect(config={"temp_directory": self._spilled.name})
        try:
            self._check(statement)
            topics = named_topics(statement, names)
            if topics:
                options = reading_options(topics, bootstrap, timeout_ms, isolation, SQL_WORDS, security=security)
                self._make_tables(fixed(replace(options, columns=COLUMNS), from_, to, self._texts()), topics)
            self._run(lambda: self._connection.execute(statement))
            described = self._connection.description or ()
        except BaseException:
            self.close()
            raise
        self.columns = _distinct([column[0] for column in described])
        self.types = [str(column[1]) for column in described]

    def __repr__(self) -> str:
        return f"<TopicQuery columns={','.join(self.columns)}>"

    def __enter__(self) -> TopicQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pages(self, rows: int = 1_000) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the result, some rows at a time; the rest of the topics is fetched meanwhile.

        Raises:
            StatementError: DuckDB failed, for example at a value that cannot be cast.
            DataLoss, NotText, QueryError, KafkaError: as for `barnabas.arrow.Records.batches`.
        """
        while True:
            page = self._run(lambda: self._connection.fetchmany(rows))
            if not page:
                return
            yield page

    def close(self) -> None:
        """End the statement, and remove its temporary files."""
        last = self._thread.submit(lambda: None)
        while wait([last], _LOOK_SECONDS).not_done:
            self._connection.interrupt()  # again and again: one that comes before DuckDB begins is lost
        self._thread.shutdown()
        self._connection.close()
        self._spilled.cleanup()

    def _check(self, statement: str) -> None:
        # Otherwise a name that is no topic could be a variable of this program.
        self._connection.execute("SET python_enable_replacements = false")
        self._connection.execute("SET TimeZone = 'UTC'")
        with self._explained():
            count = len(self._connection.extract_statements(statement))
        if count != 1:
            raise StatementError(f"write one statement, not {count}")

    def _texts(self) -> list[str]:
        return [name for name, kind in self._kinds.items() if kind != "binary"]

    def _make_tables(self, records: Records, topics: Sequence[str]) -> None:
        columns = ", ".join(
            f'"{name}"::JSON AS "{name}"' if self._kinds.get(name) == "json" else f'"{name}"' for name in COLUMNS
        )
        for number, topic in enumerate(topics):
            source = f"barnabas_topic_{number}"
            self._connection.register(source, RecordsDataset(records.only(topic), self._failures.append))
            self._connection.execute(f'CREATE TEMP VIEW "{topic}" AS SELECT {columns} FROM {source}')

    def _run(self, work: Callable[[], Any]) -> Any:
        """Return what DuckDB does, in a thread of its own.

        In the main thread DuckDB sees Ctrl-C itself, and then waits for its other threads, which may never end: only `interrupt` ends
        them. Here Ctrl-C ends the wait, and `close` interrupts.
        """
        running = self._thread.submit(work)
        while wait([running], _LOOK_SECONDS).not_done:
            pass  # Ctrl-C that comes just before a wait does not end it
        with self._explained():
            return running.result()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise the error that ended a scan instead of DuckDB's report of it, and DuckDB's own as one sentence."""
        try:
            yield
        except duckdb.Error as error:
            if self._failures:
                raise self._failures[0] from None
            raise _sentence(str(error)) from None


def named_topics(statement: str, names: Iterable[str]) -> list[str]:
    """Return the topics whose names are words of a statement.

    Raises:
        StatementError: two of them differ by case alone, and the statement names neither exactly, or both.
    """
    words = {(quoted.replace('""', '"') or text or word) for quoted, text, word in _WORD.findall(statement)}
    by_lower: dict[str, list[str]] = {}
    for name in names:
        by_lower.setdefault(name.lower(), []).append(name)
    found: list[str] = []
    for lower in sorted({word.lower() for word in words} & by_lower.keys()):
        alike = by_lower[lower]
        exact = [name for name in alike if name in words]
        if len(alike) > 1 and len(exact) != 1:
            raise StatementError(
                f"SQL does not tell the topics {' and '.join(sorted(alike))} apart: name one of them, exactly"
            )
        found += exact if len(alike) > 1 else alike
    return found


def _sentence(message: str) -> StatementError:
    """Return DuckDB's error without its class and without its picture of the statement."""
    if missing := _MISSING.search(message):
        return NoSuchTable(missing[1])
    text = message.split("\n\nLINE ")[0]
    kind, colon, rest = text.partition(" Error: ")
    return StatementError(" ".join((rest if colon and len(kind) < 24 else text).split()))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with numbers behind those that came before."""
    found: list[str] = []
    for name in names:
        number, distinct = 0, name
        while distinct in found:
            number += 1
            distinct = f"{name}_{number}"
        found.append(distinct)
    return found
