"""Reads a task's range: pipelined fetches over one connection, decoded into Arrow.

The plan of the task names the leader's address, so the task connects once and requests no metadata. It sends the next
fetch before it decodes the last one: the broker reads while the task computes.

Errors and how they are handled:

- The leader moved, or the connection broke: the task requests metadata and repeats the fetch at the same offset, until
  no records have arrived for `kafkaConsumer.pollTimeoutMs`.
- The offset is gone (retention, DeleteRecords) or beyond the end (the log was cut): data loss, see `data_loss`. Without
  `failOnDataLoss` the task continues at the first existing offset, or ends its range.
- The topic is gone, or another topic has its name (the id changed): data loss. Without `failOnDataLoss` the task ends
  its range.

Invariant: rows are in order of offsets, and each offset of the range appears at most once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.spark.columnar import Selection, select_batches, to_arrow
from barnabas.spark.data_loss import report_data_loss
from barnabas.spark.offset_reader import Leader, OffsetReader, is_retriable
from barnabas.spark.options import IsolationLevel, SourceOptions
from barnabas.spark.ranges import OffsetRange

# Up to this version Fetch names topics by name, from the next version on by id (KIP-516).
_LAST_FETCH_BY_NAME = 12
_TOPIC_IS_ANOTHER = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)
_RETRY_PAUSE_S = 0.1


class NoProgress(Exception):
    """Records that must exist did not arrive within `kafkaConsumer.pollTimeoutMs`."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The part of a Fetch response that one partition's reader needs."""

    error: ErrorCode
    records: memoryview
    aborted: list[tuple[int, int]]
    log_end: int


class RangeFetcher:
    """Reads one range. Use it once: `for rows in RangeFetcher(...)`.

    Args:
        options: the query's options.
        wanted: the range.
        leader: the partition's leader when the task was planned.
        connect, offset_reader, clock, sleep: seams for tests.
    """

    def __init__(
        self,
        options: SourceOptions,
        wanted: OffsetRange,
        leader: Leader,
        *,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
        offset_reader: Callable[[SourceOptions], OffsetReader] = OffsetReader,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._wanted = wanted
        self._leader = leader
        self._connect = connect
        self._offset_reader = offset_reader
        self._clock = clock
        self._sleep = sleep
        self._offset = wanted.start
        self._connection: BlockingConnection | None = None
        self._last_progress_s = clock()

    def __repr__(self) -> str:
        return f"<RangeFetcher partition={self._name} offset={self._offset} end={self._wanted.end}>"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range.

        Raises:
            DataLoss: records of the range are gone and `failOnDataLoss` is true.
            NoProgress: no records arrived for `kafkaConsumer.pollTimeoutMs`.
            KafkaError: the broker returned an error that is not retriable, or the records are damaged.
        """
        try:
            while self._offset < self._wanted.end:
                try:
                    fetched = self._fetch()
                except KafkaError as error:
                    self._recover(error)
                    continue
                if fetched.error:
                    self._handle(fetched.error)
                    continue
                yield from self._rows(fetched)
        finally:
            self._drop_connection()

    def _fetch(self) -> _Fetched:
        """Return the response to the fetch at the current offset; send the fetch first unless it is already sent."""
        connection = self._connection
        if connection is None:
            consumer = self._options.consumer
            connection = self._connection = self._connect(
                self._leader.host,
                self._leader.port,
                client_id=consumer.client_id,
                timeout_ms=consumer.request_timeout_ms,
            )
        if not connection.unanswered:
            self._send(connection)
        return _fetched(connection.receive(), self._options.consumer.isolation_level)

    def _send(self, connection: BlockingConnection) -> None:
        request_class = messages.FetchRequest
        consumer = self._options.consumer
        has_id = self._leader.topic_id != bytes(ZERO_UUID)
        version = connection.version_for(request_class, None if has_id else _LAST_FETCH_BY_NAME)
        partition = request_class.FetchPartition(
            partition=self._wanted.partition,
            fetch_offset=self._offset,
            partition_max_bytes=consumer.fetch_max_bytes,
        )
        by_name = version <= _LAST_FETCH_BY_NAME
        topic = (
            request_class.FetchTopic(topic=self._wanted.topic, partitions=[partition])
            if by_name
            else request_class.FetchTopic(topic_id=self._leader.topic_id, partitions=[partition])
        )
        request = request_class(
            max_wait_ms=consumer.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=consumer.fetch_max_bytes,
            isolation_level=consumer.isolation_level.value,
            topics=[topic],
        )
        connection.send(request, version)

    def _rows(self, fetched: _Fetched) -> Iterator[pa.RecordBatch]:
        first = self._offset
        selection = select_batches(
            fetched.records, first, self._wanted.end, fetched.aborted, check_crcs=self._options.consumer.check_crcs
        )
        if selection.next_offset == first:
            self._wait_for_records(fetched.log_end)
            return
        self._offset = selection.next_offset
        self._last_progress_s = self._clock()
        if self._offset < self._wanted.end:
            self._send_ahead()
        yield from self._decode(fetched.records, selection, first)

    def _send_ahead(self) -> None:
        """Send the next fetch before the last response is decoded. After a failure, `_fetch` sends it again."""
        assert self._connection is not None
        try:
            self._send(self._connection)
        except KafkaError:
            self._drop_connection()

    def _decode(self, records: memoryview, selection: Selection, first: int) -> Iterator[pa.RecordBatch]:
        return to_arrow(
            records,
            selection.batches,
            first,
            self._wanted.end,
            topic=self._wanted.topic,
            partition=self._wanted.partition,
            include_headers=self._options.include_headers,
        )

    def _wait_for_records(self, log_end: int) -> None:
        """Handle a response without records, although the range existed: the log was cut, or the broker is slow."""
        if 0 <= log_end <= self._offset:
            self._skip_to(self._wanted.end, f"{self._name} now ends at offset {log_end}")
        self._check_patience("no records arrived")

    def _handle(self, code: ErrorCode) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._skip_what_is_gone()
        elif code in _TOPIC_IS_ANOTHER:
            self._follow_topic(error_for(code))
        elif code == ErrorCode.UNKNOWN_SERVER_ERROR:
            # Kafka's own consumer retries after this error too.
            self._retry(error_for(code))
        else:
            self._recover(error_for(code))

    def _skip_what_is_gone(self) -> None:
        partition = (self._wanted.topic, self._wanted.partition)
        reader = self._offset_reader(self._options)
        try:
            earliest = reader.earliest([partition])[partition]
        finally:
            reader.close()
        if earliest > self._offset:
            self._skip_to(earliest, f"{self._name} now begins at offset {earliest}")
        else:
            self._skip_to(self._wanted.end, f"{self._name} no longer reaches offset {self._offset}")

    def _skip_to(self, offset: int, why: str) -> None:
        offset = min(offset, self._wanted.end)
        gone = f"Offsets {self._offset} to {offset - 1} of {self._name} are gone: {why}"
        report_data_loss(gone, fail=self._options.fail_on_data_loss)
        self._offset = offset

    def _follow_topic(self, error: KafkaError) -> None:
        """Handle an unknown topic: the leader moved, the topic was deleted, or another topic has its name."""
        try:
            leader = self._find_leader()
        except KafkaError as gone:
            if gone.code not in _TOPIC_IS_ANOTHER:
                self._recover(gone)
                return
            self._skip_to(self._wanted.end, "the topic was deleted")
            return
        if leader.topic_id != self._leader.topic_id:
            self._skip_to(self._wanted.end, "the topic was deleted and another topic has its name")
            return
        self._recover(error, leader)

    def _recover(self, error: KafkaError, leader: Leader | None = None) -> None:
        """Prepare a retry after a retriable error; raise any other error."""
        if not is_retriable(error):
            raise error
        self._retry(error, leader)

    def _retry(self, error: KafkaError, leader: Leader | None = None) -> None:
        self._drop_connection()
        self._check_patience(str(error))
        self._sleep(_RETRY_PAUSE_S)
        try:
            found = leader or self._find_leader()
        except KafkaError as unknown:
            if not is_retriable(unknown):
                raise
            return
        # The id stays that of the plan, so the task never reads another topic of the same name.
        self._leader = Leader(self._leader.topic_id, found.host, found.port)

    def _find_leader(self) -> Leader:
        partition = (self._wanted.topic, self._wanted.partition)
        reader = self._offset_reader(self._options)
        try:
            reader.partitions()
            return reader.leaders([partition])[partition]
        finally:
            reader.close()

    def _check_patience(self, why: str) -> None:
        waited_ms = (self._clock() - self._last_progress_s) * 1000
        if waited_ms >= self._options.poll_timeout_ms:
            raise NoProgress(
                f"Cannot read offset {self._offset} of {self._name} (before {self._wanted.end}): "
                f"{why} for {self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
            )

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _name(self) -> str:
        return f"{self._wanted.topic}-{self._wanted.partition}"


def _fetched(response: Any, isolation: IsolationLevel) -> _Fetched:
    if response.error_code:
        return _Fetched(ErrorCode(response.error_code), memoryview(b""), [], -1)
    ((answer,),) = [topic.partitions for topic in response.responses]
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
    committed_only = isolation is IsolationLevel.READ_COMMITTED
    return _Fetched(
        ErrorCode(answer.error_code),
        memoryview(answer.records or b""),
        aborted if committed_only else [],
        answer.last_stable_offset if committed_only else answer.high_watermark,
    )
