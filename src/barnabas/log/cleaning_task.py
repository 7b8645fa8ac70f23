"""A cleaning's task and its results: plain values that pass between the broker and the cleaner.

A task holds everything that a cleaner needs, so that it needs no open log: sealed segments, which no longer change, the
offsets between which they may be cleaned, and the contents of the producers' state and of the transaction indexes.

    broker  -- CleaningTask -->  cleaner
    broker  <-- GroupCleaned --  cleaner       once for every new segment, as soon as its files are complete and synced
    broker  <-- CleaningDone --  cleaner       or CleaningFailed; nothing follows

They travel as one line of JSON each (`task_to_line`, `event_to_line`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from barnabas.log.transaction_index import AbortedTransaction


class SourceSegment(NamedTuple):
    """A sealed segment to be cleaned; sizes in bytes."""

    base_offset: int
    end_offset: int
    """Where the next segment begins."""
    size: int
    index_size: int
    time_index_size: int


class LastRecord(NamedTuple):
    """The last record of an active producer. It must stay, so that sequence and epoch survive the next start."""

    producer_id: int
    last_data_offset: int
    """-1 if the producer has only a marker."""
    producer_epoch: int


class CleaningTask(NamedTuple):
    """One cleaning of one log. Times in epoch milliseconds."""

    directory: str
    sources: list[SourceSegment]
    """All segments up to the first uncleanable offset, ascending."""
    first_dirty_offset: int
    """The map takes keys from here on; everything below has been cleaned before."""
    first_uncleanable_offset: int
    aborted: list[AbortedTransaction]
    producers: list[LastRecord]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_buffer_bytes: int
    load_factor: float
    max_bytes_per_second: float


class GroupCleaned(NamedTuple):
    """A new segment, in files that end in `.cleaned`, that replaces some old ones."""

    base_offset: int
    size: int
    replaces: list[int]
    """The base offsets of the old segments."""


class CleaningDone(NamedTuple):
    """All groups are cleaned. Counts as in Kafka's `CleanerStats`."""

    end_offset: int
    """The first offset that this round has not cleaned."""
    bytes_read: int
    messages_read: int
    bytes_written: int
    messages_written: int
    map_bytes_read: int
    map_messages_read: int
    invalid_messages_read: int
    buffer_utilization: float
    index_seconds: float
    elapsed_seconds: float


class CleaningFailed(NamedTuple):
    """The cleaning ended early."""

    reason: str
    """One sentence for the log."""
    is_corrupt: bool
    """The log is corrupt, and another attempt is useless. Otherwise the disk failed."""


CleaningEvent = GroupCleaned | CleaningDone | CleaningFailed
_EVENTS = {kind.__name__: kind for kind in (GroupCleaned, CleaningDone, CleaningFailed)}


def task_to_line(task: CleaningTask) -> bytes:
    return json.dumps(task).encode() + b"\n"


def task_from_line(line: bytes) -> CleaningTask:
    fields = json.loads(line)
    task = CleaningTask._make(fields)
    return task._replace(
        sources=[SourceSegment._make(entry) for entry in task.sources],
        aborted=[AbortedTransaction._make(entry) for entry in task.aborted],
        producers=[LastRecord._make(entry) for entry in task.producers],
    )


def event_to_line(event: CleaningEvent) -> bytes:
    return json.dumps([type(event).__name__, *event]).encode() + b"\n"


def event_from_line(line: bytes) -> CleaningEvent:
    name, *fields = json.loads(line)
    return _EVENTS[name]._make(fields)
