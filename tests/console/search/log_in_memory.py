"""A partition in memory in the place of a broker: batches with gaps between them, removal, damage, and leaders that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from barnabas.client.admin import OffsetAndTimestamp, TopicPartition
from barnabas.console.search import partition_scan
from barnabas.console.search.fetched import Fetched
from barnabas.console.search.partition_scan import PartitionScan
from barnabas.console.search.span import PartitionSpan
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import read_header


class _Cluster:
    def retry(self, ask: Callable[[], Any]) -> Any:
        return ask()


class _Admin:
    cluster = _Cluster()


@dataclass
class MemoryLog:
    """Batches in the order of their offsets.

    Attributes:
        start: the log start offset.
        failures: what the next fetches raise, the first one first.
        fetched: bytes that fetches returned.
    """

    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    failures: list[KafkaError] = field(default_factory=list)
    fetched: int = 0

    def add(self, offset: int, count: int, *, value: bytes = b"v", timestamps: list[int] | None = None) -> None:
        """Append a batch; what was between the last one and its offset is a gap."""
        times = timestamps or [offset + each for each in range(count)]
        batch = build_batch([(times[each], b"k", value, ()) for each in range(count)], base_offset=offset)
        self.batches.append(bytes(batch))

    def damage(self, index: int) -> None:
        """Change the last byte of a batch."""
        batch = bytearray(self.batches[index])
        batch[-1] ^= 0xFF
        self.batches[index] = bytes(batch)

    @property
    def end(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else self.start

    def fetch(
        self, cluster: Any, where: Any, topic_id: Any, offset: int, below: int, *, decided: bool, most_bytes: int
    ) -> Fetched:
        if self.failures:
            raise self.failures.pop(0)
        if not self.start <= offset <= self.end:
            raise error_for(ErrorCode.OFFSET_OUT_OF_RANGE)
        found = b""
        for batch in self.batches:
            if read_header(batch).next_offset <= offset:
                continue
            if found and len(found) + len(batch) > most_bytes:
                break
            found += batch
        if not found and self.end < below:
            raise error_for(ErrorCode.REQUEST_TIMED_OUT)
        self.fetched += len(found)
        return Fetched(memoryview(found), {}, decided, self.start)

    def list_offsets(self, cluster: Any, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        return {where: OffsetAndTimestamp(self.start, -1, -1) for where in wanted}

    def scan(
        self, monkeypatch: pytest.MonkeyPatch, span: PartitionSpan, *, newest_first: bool, most_bytes: int = 4096
    ) -> PartitionScan:
        """Return a scan of this log."""
        monkeypatch.setattr(partition_scan, "fetch", self.fetch)
        monkeypatch.setattr(partition_scan, "list_offsets", self.list_offsets)
        admin: Any = _Admin()
        return PartitionScan(admin, "t", bytes(16), span, newest_first=newest_first, most_bytes=most_bytes)


def span_of(begin: int, end: int, *, newest_first: bool) -> PartitionSpan:
    """Return a span that nothing was read of."""
    return PartitionSpan(0, begin, end, end, 0, end if newest_first else begin)


def taken(scan: PartitionScan) -> list[int]:
    """Return the offsets of all entries that a scan has; a damaged batch is its first offset."""
    found = []
    while scan.head() is not None:
        found.append(scan.take().first)
    return found
