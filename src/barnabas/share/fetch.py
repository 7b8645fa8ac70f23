"""DelayedShareFetch: reads where records may be acquired, acquires them, and waits while no record is available.

    for each share partition   next_fetch_offset ──► log.read ──► (enough bytes?) ──► acquire ──► cut to the acquired batches

- Records are acquired only when the fetch is answered, so a waiting fetch never holds records.
- The bytes allowed are divided evenly among the partitions that may have records, and at least one record batch is read.
- A waiting fetch looks again when records are appended or committed (`delayed_fetches`), and when a share partition has changed: records
  were released, locks have ended, or the window may grow again.
- A fetch whose connection closes is cancelled and acquires nothing.

Sources: KIP-932; Kafka's `DelayedShareFetch`, `ShareFetchUtils`, `PartitionMaxBytesStrategy`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.log.errors import OffsetOutOfRange
from barnabas.log.log_slice import LogSlice
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareFetchResponse
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BatchHeader
from barnabas.replication.offset_lookup import READ_COMMITTED
from barnabas.replication.purgatory import DelayedOperation
from barnabas.share.share_partition import SharePartition
from barnabas.share.window import Acquired

__all__ = ["DelayedShareFetch", "ShareFetchParams", "ShareFetchResults"]

logger = logging.getLogger(__name__)

PartitionData = ShareFetchResponse.PartitionData
ShareFetchResults = dict[SharePartition, PartitionData]


class ShareFetchParams(NamedTuple):
    """The limits of a ShareFetch.

    Attributes:
        strict: record_limit mode: never more than max_records.
    """

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool
    isolation_level: int


class _Read(NamedTuple):
    fetch_offset: int
    slice: LogSlice | None
    error: KafkaError | None


class DelayedShareFetch(DelayedOperation):
    """One ShareFetch.

    Args:
        partitions: in the order of reading.
        on_error: called with an error that may end a share partition.
    """

    __slots__ = ("_is_scheduled", "_loop", "_on_error", "_params", "_partitions")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        params: ShareFetchParams,
        partitions: Sequence[SharePartition],
        on_error: Callable[[SharePartition, KafkaError], None],
    ) -> None:
        super().__init__(loop.create_future())
        self._loop = loop
        self._params = params
        self._partitions = partitions
        self._on_error = on_error
        self._is_scheduled = False

    def __repr__(self) -> str:
        return (
            f"<DelayedShareFetch {self._params.group_id}/{self._params.member_id} {len(self._partitions)} partitions>"
        )

    def notified(self, amount: int) -> None:
        """Look again in a later turn of the loop, once for all changes of this turn."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self.look_again)

    def look_again(self) -> None:
        """Finish if there are enough bytes now, or an error."""
        self._is_scheduled = False
        if self.is_finished or self.future.done():
            return
        try:
            results = self.try_complete()
        except Exception as error:
            self.fail(error)
        else:
            if results is not None:
                self.finish(results)

    def expired(self) -> None:
        """Finish with the records that there are."""
        self.finish(self._acquire(self._read(self._partitions)))

    def try_complete(self, among: Sequence[SharePartition] | None = None) -> ShareFetchResults | None:
        """Read, and acquire if there are enough bytes or an error; returns None if the fetch must wait.

        Args:
            among: the partitions to look at; None for all.
        """
        reads = self._read(self._partitions if among is None else among)
        if not reads:
            return None
        size = sum(read.slice.size for read in reads.values() if read.slice is not None)
        if any(read.error is not None for read in reads.values()) or (size > 0 and size >= self._params.min_bytes):
            return self._acquire(reads)
        return None

    def _read(self, among: Sequence[SharePartition]) -> dict[SharePartition, _Read]:
        """Read each partition that may have records to acquire."""
        offsets = {}
        for shared in among:
            offset = shared.next_fetch_offset()
            if offset is not None:
                offsets[shared] = offset
        if not offsets:
            return {}
        each = self._params.max_bytes // len(offsets)
        reads = {}
        has_one = False
        for shared, offset in offsets.items():
            read = reads[shared] = self._read_one(shared, offset, each, min_one=not has_one)
            has_one = has_one or (read.slice is not None and read.slice.size > 0)
        return reads

    def _read_one(self, shared: SharePartition, offset: int, max_bytes: int, *, min_one: bool) -> _Read:
        try:
            if shared.is_stale:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            log = shared.partition.log
            return _Read(offset, log.read(offset, max_bytes, max_offset=self._end(log), min_one=min_one), None)
        except KafkaError as error:
            return _Read(offset, None, error)

    def _end(self, log: PartitionLog) -> int:
        return log.last_stable_offset if self._params.isolation_level == READ_COMMITTED else log.high_watermark

    def _acquire(self, reads: dict[SharePartition, _Read]) -> ShareFetchResults:
        results: ShareFetchResults = {}
        left = self._params.max_records
        for shared, read in reads.items():
            data = PartitionData(partition_index=shared.partition.index, records=b"")
            if read.error is not None:
                self._failed(shared, read.error, data)
            elif read.slice is not None and read.slice.size and left > 0:
                try:
                    acquired, records = self._acquire_one(shared, read.fetch_offset, read.slice, left)
                except KafkaError as error:
                    self._failed(shared, error, data)
                else:
                    left -= sum(part.size for part in acquired)
                    data.records = records if acquired else b""
                    data.acquired_records = [
                        ShareFetchResponse.AcquiredRecords(
                            first_offset=part.first, last_offset=part.last, delivery_count=part.delivery_count
                        )
                        for part in acquired
                    ]
            results[shared] = data
        return results

    def _failed(self, shared: SharePartition, error: KafkaError, data: PartitionData) -> None:
        if isinstance(error, OffsetOutOfRange):
            # The log starts above the share partition: the next fetch reads from its start.
            shared.move_start(shared.partition.log.log_start_offset)
            return
        data.error_code = int(error.code)
        data.error_message = error.message
        self._on_error(shared, error)

    def _acquire_one(
        self, shared: SharePartition, fetch_offset: int, records: LogSlice, left: int
    ) -> tuple[list[Acquired], LogSlice]:
        log = shared.partition.log
        headers = list(records.headers())
        aborted: list[tuple[int, int]] = []
        markers: list[tuple[int, int]] = []
        if self._params.isolation_level == READ_COMMITTED:
            end = headers[-1][1].next_offset
            aborted = [(each.producer_id, each.first_offset) for each in log.aborted_transactions(fetch_offset, end)]
            markers = _abort_markers(records, headers) if aborted else []
        acquired = shared.acquire(
            self._params.member_id,
            [header for _, header in headers],
            fetch_offset=fetch_offset,
            max_records=left,
            batch_size=self._params.batch_size,
            strict=self._params.strict,
            aborted=aborted,
            abort_markers=markers,
        )
        if not acquired:
            return acquired, records
        return acquired, _cut(records, headers, acquired[0].first, acquired[-1].last)


def _cut(records: LogSlice, headers: Sequence[tuple[int, BatchHeader]], first: int, last: int) -> LogSlice:
    """Return the record batches that hold a range of offsets."""
    inside = [
        (position, header) for position, header in headers if header.last_offset >= first and header.base_offset <= last
    ]
    if not inside or len(inside) == len(headers):
        return records
    begin = inside[0][0]
    end = inside[-1][0] + inside[-1][1].size
    return records.part(begin, end)


def _abort_markers(records: LogSlice, headers: Sequence[tuple[int, BatchHeader]]) -> list[tuple[int, int]]:
    """Return producer id and offset of each abort marker."""
    found = []
    data: memoryview | None = None
    for position, header in headers:
        if header.is_control and header.has_producer:
            if data is None:
                data = memoryview(records.read())
            start = position - records.position
            marker = next(iter(iter_records(data[start : start + header.size])), None)
            if marker is not None and control_type(marker.key) is ControlRecordType.ABORT:
                found.append((header.producer_id, header.base_offset))
    return found
