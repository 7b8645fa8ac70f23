"""The formats of a topic's keys and values, guessed from some records before a filter is asked about any.

A filter must see all records of a search in one format, so a guess becomes a part of the query, and of the address of its next page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barnabas.client.admin import Admin
from barnabas.console.search.fetched import Found
from barnabas.console.search.query import Query
from barnabas.console.search.search import Limits, run
from barnabas.decoding.decoder import Decoder

_RECORDS = 20
_LIMITS = Limits(seconds=5.0, bytes=8 * 1024 * 1024)
"""As patient as a page: without a record the guess would be text, and a filter by field would find nothing."""


def with_formats(admin: Admin, query: Query, decoder: Decoder, now_ms: int) -> Query:
    """Return a query with the formats that fit the first records of its range; errors are those of `run`."""
    if query.key_as and query.value_as:
        return query
    plain = Query(
        topic=query.topic,
        offset=query.offset,
        partitions=query.partitions,
        limit=_RECORDS,
        order=query.order,
        isolation_level=query.isolation_level,
    )
    return formats_of(query, decoder, run(admin, plain, decoder, now_ms, limits=_LIMITS).found)


def formats_of(query: Query, decoder: Decoder, found: Sequence[Found]) -> Query:
    """Return a query with the formats that fit some records; those that it has stay."""
    data = [each.record for each in found if not each.batch.is_control]
    return replace(
        query,
        key_as=query.key_as or decoder.guess(query.topic, [each.key for each in data]),
        value_as=query.value_as or decoder.guess(query.topic, [each.value for each in data]),
    )
