"""The formats of a topic's keys and values, guessed from some records before a filter is asked about any.

A filter must see all records of a search in one format, so a guess becomes a part of the query, and of the address of its next page. A
format for which there was nothing to guess from stays empty: the next page guesses again. `Guess.sentence` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.cli.wording import counted
from barnabas.client.admin import Admin
from barnabas.console.search.fetched import Found
from barnabas.console.search.query import FORMAT_FIELDS, Query
from barnabas.console.search.search import Limits, Outcome, Stop, run
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.internal_topics import INTERNAL_TOPICS

_RECORDS = 20
LIMITS = Limits(seconds=5.0, bytes=8 * 1024 * 1024)
"""As patient as a page: without a record a filter by field finds nothing."""


class Guess(NamedTuple):
    """A query with formats, and what they were guessed from.

    Attributes:
        query: with the formats that were guessed; empty ones if there was nothing to guess from.
        records: how many were looked at.
        keys, values: from how many each format was guessed; None for a format that the query has.
        why_none: why there was no record, as the end of a sentence; empty if there were records, or none can be expected.
    """

    query: Query
    records: int = 0
    keys: int | None = None
    values: int | None = None
    why_none: str = ""

    def sentence(self) -> str:
        """Return what was guessed and from how many records, or that nothing was and what to do; empty if the query has its formats."""
        counts = {"value": (self.values, self.query.value_as), "key": (self.keys, self.query.key_as)}
        wanted = {part: each for part, each in counts.items() if each[0] is not None}
        if not wanted or not (self.records or self.why_none):
            return ""
        if not self.records:
            fields = " and ".join(FORMAT_FIELDS[part] for part in wanted)
            return f"No format was guessed, because {self.why_none}: choose it under {fields}."
        said = []
        for part, (count, format) in wanted.items():
            some = f" ({count} of them)" if count != self.records else ""
            said.append(f"{part}s are {format}{some}" if count else f"no {part} to guess from")
        return f"Guessed from {counted(self.records, 'record')}: {', '.join(said)}."

    def data(self) -> dict[str, object]:
        """Return it for programs."""
        return {
            "value_as": self.query.value_as,
            "key_as": self.query.key_as,
            "guessed_from_records": self.records,
            "guessed_from_values": self.values,
            "guessed_from_keys": self.keys,
        }


def guessed(admin: Admin, query: Query, decoder: Decoder, now_ms: int) -> Guess:
    """Return the formats that fit the first records of a query's range; errors are those of `run`."""
    if (query.key_as and query.value_as) or query.topic in INTERNAL_TOPICS:
        return Guess(query)
    plain = Query(
        topic=query.topic,
        offset=query.offset,
        partitions=query.partitions,
        limit=_RECORDS,
        order=query.order,
        isolation_level=query.isolation_level,
    )
    sample = run(admin, plain, decoder, now_ms, limits=LIMITS)
    return guess_of(query, decoder, sample.found)._replace(why_none=_why_none(sample))


def _why_none(sample: Outcome) -> str:
    if sample.found:
        return ""
    if sample.stop is Stop.TIME:
        return f"the cluster gave no record within {LIMITS.seconds:g} seconds"
    return "no record could be read" if sample.failures else ""


def guess_of(query: Query, decoder: Decoder, found: Sequence[Found]) -> Guess:
    """Return the formats that fit some records; those that the query has stay."""
    if query.topic in INTERNAL_TOPICS:
        return Guess(query)
    data = [each.record for each in found if not each.batch.is_control]
    keys, values = [each.key for each in data if each.key], [each.value for each in data if each.value]
    made = replace(
        query,
        key_as=query.key_as or (decoder.guess(query.topic, keys) if keys else ""),
        value_as=query.value_as or (decoder.guess(query.topic, values) if values else ""),
    )
    return Guess(made, len(data), None if query.key_as else len(keys), None if query.value_as else len(values))


def formats_of(query: Query, decoder: Decoder, found: Sequence[Found]) -> Query:
    """Return a query with the formats that fit some records; those that it has stay."""
    return guess_of(query, decoder, found).query
