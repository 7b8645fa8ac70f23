"""The entries of one partition, one after the other, forwards or backwards.

A log can only be read forwards. Backwards, a scan fetches windows of offsets, each before the last one, and turns them around; a window is
as large as its bytes allow, by those of the window before.

What is gone is counted (`PartitionSpan.removed`): forwards the offsets before the log's new start, backwards those that the scan would have
come to. A scan that cannot go on says why (`failure`), and keeps its position.
"""

from __future__ import annotations

from collections import deque

from barnabas.client.admin import Admin, TopicPartition, result
from barnabas.client.offsets import EARLIEST, list_offsets
from barnabas.console.search.fetched import Entry, Piece, fetch, piece_of
from barnabas.console.search.span import PartitionSpan
from barnabas.protocol.errors import ErrorCode, KafkaError

FETCH_BYTES = 4 * 1024 * 1024
_FETCH_BYTES_MIN = 16 * 1024
_FIRST_WINDOW = 128
_BYTES_OF_AN_OFFSET = 1_024
_WINDOW_MAX = 65_536


class TopicIsGone(Exception):
    """The topic was deleted while it was searched; another one may have its name."""


class _TooMuch(Exception):
    """A window has more bytes than a scan may hold."""


class PartitionScan:
    """Reads what is left of a span.

    Args:
        span: is moved by `take`.
        most_bytes: that one fetch, or one window, should have.
    """

    def __init__(
        self, admin: Admin, topic: str, topic_id: bytes, span: PartitionSpan, *, newest_first: bool, most_bytes: int
    ) -> None:
        self.span = span
        self.failure: KafkaError | None = None
        self.fetched_bytes = 0
        self._admin = admin
        self._where = TopicPartition(topic, span.partition)
        self._topic_id = topic_id
        self._newest_first = newest_first
        self._most_bytes = most_bytes
        self._window = _FIRST_WINDOW
        self._bytes_of_an_offset = _BYTES_OF_AN_OFFSET
        self._entries: deque[Entry] = deque()
        # How far the entries reach: forwards the next offset to fetch, backwards the offset above the next window.
        self._reach = span.position

    def __repr__(self) -> str:
        return f"<PartitionScan partition={self.span.partition} position={self.span.position}>"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.span.position == (self.span.begin if self._newest_first else self.span.end)

    def head(self) -> Entry | None:
        """Return the next entry, and fetch it if need be; None at the end, or after a failure.

        Raises:
            TopicIsGone: the topic was deleted.
        """
        while not self._entries and self.failure is None and not self.is_done:
            try:
                (self._fill_backwards if self._newest_first else self._fill_forwards)()
            except KafkaError as error:
                if error.code in (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ErrorCode.UNKNOWN_TOPIC_ID,
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                ):
                    raise TopicIsGone from None
                self.failure = error
        return self._entries[0] if self._entries else None

    def time_ms(self) -> int:
        """Return the time that the next entry counts as."""
        timestamp, edge_ms = self._entries[0].timestamp, self.span.edge_ms
        if edge_ms is None:
            return timestamp
        return min(timestamp, edge_ms) if self._newest_first else max(timestamp, edge_ms)

    def take(self) -> Entry:
        """Return the next entry, and move the span beyond it. It must have been seen by `head`."""
        span = self.span
        span.edge_ms = self.time_ms()
        entry = self._entries.popleft()
        if self._newest_first:
            span.position = max(entry.first, span.begin)
        else:
            span.position = min(entry.last + 1, span.end)
        if entry.found is None:
            span.damaged += entry.last + 1 - entry.first
        elif entry.found.batch.is_control:
            span.control += 1
        else:
            span.records += 1
        if not self._entries:
            self._settle()
        return entry

    def _settle(self) -> None:
        """Move over the offsets without a record that stand behind the last entry."""
        self.span.position = self._reach

    def _fill_forwards(self) -> None:
        span = self.span
        try:
            piece = self._piece(self._reach, span.end, self._most_bytes)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            self._reach = min(self._start(error, self._reach), span.end)
            span.removed += self._reach - span.position
        else:
            self._entries.extend(_within(piece.entries, self._reach, piece.reach))
            self._reach = piece.reach
        if not self._entries:
            self._settle()

    def _fill_backwards(self) -> None:
        span = self.span
        while True:
            first = max(self._reach - self._window, span.begin)
            try:
                entries, first, size = self._window_of(first)
                break
            except _TooMuch:
                self._window = max(1, (self._reach - first) // 4)
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                start = self._start(error, first)
                if start >= self._reach:
                    span.removed += self._reach - span.begin
                    self._reach = span.begin
                    self._settle()
                    return
                self._window = self._reach - start
        self._bytes_of_an_offset = max(1, size // (self._reach - first))
        self._entries.extend(reversed(entries))
        self._reach = first
        self._window = max(1, min(self._window * 4, self._most_bytes // self._bytes_of_an_offset, _WINDOW_MAX))
        if not self._entries:
            self._settle()

    def _window_of(self, first: int) -> tuple[list[Entry], int, int]:
        """Return the entries from an offset on, where they begin, and their bytes. A batch that was begun is read whole."""
        entries: list[Entry] = []
        end = self._reach
        offset, size = first, 0
        while offset < end:
            # A response that reaches beyond the window is read for nothing.
            needed = (end - offset) * self._bytes_of_an_offset * 3 // 2
            piece = self._piece(offset, end, min(max(needed, _FETCH_BYTES_MIN), self._most_bytes))
            if offset == first:
                first = max(piece.first, self.span.begin)
                entries += _within(piece.entries, first, piece.reach)
            else:
                entries += _within(piece.entries, offset, piece.reach)
            size += piece.size
            offset = piece.reach
            if size > 2 * self._most_bytes and offset < end and end - first > 1:
                raise _TooMuch
        return entries, first, size

    def _piece(self, offset: int, end: int, most_bytes: int) -> Piece:
        """Read from an offset on, but not beyond what is decided: the rest is fetched in another way."""
        decided = offset < self.span.stable_end
        bound = self.span.stable_end if decided else self.span.end
        cluster = self._admin.cluster
        fetched = cluster.retry(
            lambda: fetch(cluster, self._where, self._topic_id, offset, bound, decided=decided, most_bytes=most_bytes)
        )
        self.fetched_bytes += len(fetched.records)
        return piece_of(fetched, self.span.partition, offset, min(bound, end))

    def _start(self, error: KafkaError, offset: int) -> int:
        """Return the first offset of a log that does not have an offset any more.

        Raises:
            KafkaError: the log ends before the offset instead, or its leader does not answer.
        """
        start = result(list_offsets(self._admin.cluster, {self._where: EARLIEST})[self._where]).offset
        if start <= offset:
            raise KafkaError(error.code, f"the log of {self._where} no longer reaches the wanted offsets") from None
        return start


def _within(entries: list[Entry], first: int, below: int) -> list[Entry]:
    """Return the entries in a range of offsets; a damaged batch is cut to it."""
    return [
        each if each.found is not None else each._replace(first=max(each.first, first), last=min(each.last, below - 1))
        for each in entries
        if each.last >= first and each.first < below
    ]
