"""Reads the records of all partitions in order, and keeps those that pass, until there are enough.

    outcome = run(admin, Query.of({"topic": "orders", "key": "17"}), Decoder(), now_ms)
    outcome.found                                   # at most `limit` records
    run(admin, query, Decoder(), now_ms, outcome.cursor)

A search stops when it has its limit, when its time or its bytes are used up, or at the end; in all but the last case it returns a cursor.
A partition that cannot be read is left out and named. Records are masked before a filter is asked (`decoding.masks`). The call blocks.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from barnabas.client.admin import Admin
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.fetched import Found
from barnabas.console.search.filters import UNJUDGED_PARTS, Filters
from barnabas.console.search.partition_scan import FETCH_BYTES, PartitionScan, TopicIsGone
from barnabas.console.search.query import Query
from barnabas.console.search.span import PartitionSpan, chosen_partitions, spans_of_query, topic_of
from barnabas.decoding.decoder import Decoder
from barnabas.protocol.errors import ErrorCode, KafkaError

_RECORDS_BETWEEN_LOOKS = 64
_FETCHED_AT_ONCE = 32 * 1024 * 1024
_FETCH_BYTES_MIN = 64 * 1024


class Limits(NamedTuple):
    """How much one page of a search may read.

    Attributes:
        bytes: that brokers return.
    """

    seconds: float = 5.0
    bytes: int = 256 * 1024 * 1024


PAGE_LIMITS = Limits()


class Stop(Enum):
    """Why a search stopped; the value is the rest of a sentence."""

    END = "the end is reached"
    LIMIT = "the page is full"
    TIME = "its time was used up"
    BYTES = "it has read as much as a page may"


@dataclass(slots=True)
class Outcome:
    """The result of one page of a search.

    Attributes:
        topic_id: of the topic that was read.
        found: the records, in order.
        spans: how far each partition was read, the pages before included.
        query: the query with fixed times, for the next page.
        cursor: where to go on; None at the end, and after the topic was deleted.
        found_before: records on the pages before.
        failures: why a partition was not read to its end, by partition.
        is_deleted: the topic was deleted meanwhile, and perhaps another one has its name.
        damage: the first damaged batch of this page.
        unjudged, why_unjudged, hidden: as `Filters` counts them, the pages before included.
    """

    query: Query
    topic_id: bytes
    stop: Stop
    spans: list[PartitionSpan]
    found: list[Found] = field(default_factory=list)
    cursor: Cursor | None = None
    found_before: int = 0
    failures: dict[int, KafkaError] = field(default_factory=dict)
    is_deleted: bool = False
    damage: str | None = None
    unjudged: dict[str, int] = field(default_factory=dict)
    why_unjudged: dict[str, str] = field(default_factory=dict)
    hidden: int = 0


def run(
    admin: Admin,
    query: Query,
    decoder: Decoder,
    now_ms: int,
    cursor: Cursor | None = None,
    *,
    begins: Mapping[int, int] | None = None,
    limits: Limits = PAGE_LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Return the next records of a search.

    Args:
        now_ms: epoch milliseconds, from which the query's relative times count.
        cursor: where the last page ended; None to begin.
        begins: the first offsets by partition, in place of the query's; not with a cursor.

    Raises:
        BadQuery: the query cannot be used on this topic.
        NotInstalled: the filter needs a library that is missing.
        KafkaError: the topic does not exist, or no broker answers.
    """
    filters = Filters(query, decoder, now_ms)
    topic = topic_of(admin, query.topic)
    topic_id = bytes(topic.topic_id)
    if cursor is None:
        partitions = chosen_partitions(query, topic)
        cursor = Cursor(
            topic_id, 0, 0, (0,) * len(UNJUDGED_PARTS), spans_of_query(admin, query, now_ms, partitions, begins)
        )
    elif cursor.topic_id != topic_id:
        return Outcome(query, topic_id, Stop.END, cursor.spans, found_before=cursor.found, is_deleted=True)
    filters.unjudged, filters.hidden = dict(zip(UNJUDGED_PARTS, cursor.unjudged, strict=True)), cursor.hidden
    spans = [replace(each) for each in cursor.spans]
    outcome = Outcome(query.fixed(now_ms), topic_id, Stop.END, spans, found_before=cursor.found)
    search = _Search(admin, query, topic_id, outcome, filters, decoder, limits, clock)
    try:
        search.read()
        outcome.is_deleted = _is_another(admin, query.topic, topic_id)
    except TopicIsGone:
        outcome.is_deleted = True
    outcome.unjudged, outcome.why_unjudged, outcome.hidden = filters.unjudged, filters.why, filters.hidden
    if not outcome.is_deleted and not search.is_done:
        found = cursor.found + len(outcome.found)
        outcome.cursor = Cursor(topic_id, found, filters.hidden, tuple(filters.unjudged.values()), outcome.spans)
    return outcome


def _is_another(admin: Admin, name: str, topic_id: bytes) -> bool:
    """Return whether a topic is not the same any more: brokers before topic ids return the records of another one without an error."""
    try:
        return bytes(topic_of(admin, name).topic_id) != topic_id
    except KafkaError as error:
        return error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class _Search:
    """One page of a search."""

    def __init__(
        self,
        admin: Admin,
        query: Query,
        topic_id: bytes,
        outcome: Outcome,
        filters: Filters,
        decoder: Decoder,
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self._query = query
        self._outcome = outcome
        self._filters = filters
        self._decoder = decoder
        self._is_masked = decoder.masks.of(query.topic) is not None
        self._most_bytes = limits.bytes
        self._clock = clock
        self._deadline_s = clock() + limits.seconds
        known = [each for each in outcome.spans if each.is_known]
        share = max(_FETCH_BYTES_MIN, min(FETCH_BYTES, _FETCHED_AT_ONCE // max(1, len(known))))
        self._scans = [
            PartitionScan(admin, query.topic, topic_id, each, newest_first=query.is_newest_first, most_bytes=share)
            for each in known
        ]
        self._heads: list[tuple[int, int, PartitionScan]] = []

    @property
    def is_done(self) -> bool:
        """Whether no partition has anything left that could be read; one that failed may be tried again."""
        return all(each.is_done for each in self._scans)

    def read(self) -> None:
        """Read until a reason to stop.

        Raises:
            TopicIsGone: the topic was deleted.
            BadQuery: the filter cannot be used.
        """
        for scan in self._scans:
            self._queue(scan)
            if self._is_late():
                self._outcome.stop = Stop.TIME
                return
        taken = 0
        while self._heads:
            if len(self._outcome.found) == self._query.limit:
                self._outcome.stop = Stop.LIMIT
                return
            taken += 1
            if taken % _RECORDS_BETWEEN_LOOKS == 0 and (stop := self._exhausted()) is not None:
                self._outcome.stop = stop
                return
            _, _, scan = heapq.heappop(self._heads)
            entry = scan.take()
            if entry.found is None:
                self._outcome.damage = self._outcome.damage or f"partition {scan.span.partition}: {entry.damage}"
            elif self._filters.passes(found := self._masked(entry.found)):
                self._outcome.found.append(found)
            self._queue(scan)

    def _masked(self, found: Found) -> Found:
        if not self._is_masked or found.batch.is_control:
            return found
        query = self._query
        return found._replace(record=self._decoder.masked(query.topic, found.record, query.key_as, query.value_as))

    def _queue(self, scan: PartitionScan) -> None:
        if scan.head() is None:
            if scan.failure is not None:
                self._outcome.failures[scan.span.partition] = scan.failure
            return
        time_ms = scan.time_ms()
        heapq.heappush(self._heads, (-time_ms if self._query.is_newest_first else time_ms, scan.span.partition, scan))

    def _exhausted(self) -> Stop | None:
        if self._is_late():
            return Stop.TIME
        if sum(each.fetched_bytes for each in self._scans) > self._most_bytes:
            return Stop.BYTES
        return None

    def _is_late(self) -> bool:
        return self._clock() >= self._deadline_s
