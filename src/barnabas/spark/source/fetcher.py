"""Reads a task's range: pipelined fetches over one connection, decoded into Arrow.

The plan of the task names the leader's address, so the task connects once and requests no metadata. It sends the next
fetch before it decodes the last one: the broker reads while the task computes.

Errors and how they are handled:

- The leader moved, or the connection broke: the task requests metadata and repeats the fetch at the same offset, until
  no records have arrived for `kafkaConsumer.pollTimeoutMs`.
- A response without records: the task waits as long. A new leader's high watermark may lag (KIP-207), a transaction may
  be open, or the broker is slow.
- The offset is gone (retention, DeleteRecords) or beyond the end (the log was cut): data loss, see `data_loss`. Without
  `failOnDataLoss` the task continues at the first existing offset, or ends its range.
- The topic is gone, or another topic has its name (the id changed): data loss. Without `failOnDataLoss` the task ends
  its range.

Data loss needs proof, because a broker may lag behind the cluster:

- OFFSET_OUT_OF_RANGE, if the bounds of the log agree with it; or a high watermark that is still at the offset when the
  patience is spent, if the leader epoch has been the same all the time.
- Metadata without the topic, or with another id, for `STALE_S` seconds on end.
- Every fetch names the leader epoch, and the task never returns to an earlier epoch. So a broker that does not know yet
  that it is no longer the leader cannot prove anything.

Invariant: rows are in order of offsets, and each offset of the range appears at most once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from barnabas.client.patience import is_retriable
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.spark.denied import Access, denied
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.source.columnar import Selection, select_batches, to_arrow
from barnabas.spark.source.data_loss import Loss, LossReports
from barnabas.spark.source.offset_reader import STALE_S, Leader, OffsetReader
from barnabas.spark.source.options import IsolationLevel, SourceOptions
from barnabas.spark.source.partition_lookup import PartitionLookup
from barnabas.spark.source.ranges import OffsetRange

# Up to this version Fetch names topics by name, from the next version on by id (KIP-516).
_LAST_FETCH_BY_NAME = 12
_TOPIC_IS_ANOTHER = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)
_RETRY_PAUSE_S = 0.1


class NoProgress(QueryError):
    """Records that must exist did not arrive within `kafkaConsumer.pollTimeoutMs`."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The part of a Fetch response that one partition's reader needs."""

    error: ErrorCode
    records: memoryview
    aborted: list[tuple[int, int]]
    waits_for_commit: bool


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
        self._security = options.security.client()
        self._connect = connect
        self._losses = LossReports(options, connect)
        self._lookup = PartitionLookup(options, wanted.topic, wanted.partition, offset_reader)
        self._clock = clock
        self._sleep = sleep
        self._offset = wanted.start
        self._connection: BlockingConnection | None = None
        self._last_progress_s = clock()
        # Since the last progress: the leader epoch of the first response without records, and since when the topic is
        # another one or none.
        self._waiting_epoch: int | None = None
        self._another_since_s: float | None = None

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
                security=self._security,
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
            current_leader_epoch=self._leader.epoch,
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
            self._wait_for_records(
                "the transaction is still open" if fetched.waits_for_commit else "no records arrived",
                self._about_transactions() if fetched.waits_for_commit else "",
            )
            return
        self._offset = selection.next_offset
        self._last_progress_s = self._clock()
        self._waiting_epoch = self._another_since_s = None
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
            columns=self._options.columns,
        )

    def _wait_for_records(self, why: str, advice: str) -> None:
        """Handle a response without records: wait, and when the patience is spent find out whether the log was cut."""
        if self._waiting_epoch is None:
            self._waiting_epoch = self._leader.epoch
        if self._is_patient():
            self._sleep(_RETRY_PAUSE_S)
            return
        try:
            bounds = self._lookup.bounds()
        except KafkaError as error:
            raise self._no_progress(f"{why} ({error})") from None
        if not bounds.leader.epoch == self._leader.epoch == self._waiting_epoch or bounds.end > self._offset:
            raise self._no_progress(why, advice)
        self._skip_to(self._wanted.end, f"{self._name} now ends at offset {bounds.end}")

    def _handle(self, code: ErrorCode) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._skip_what_is_gone()
        elif code == ErrorCode.UNKNOWN_SERVER_ERROR:
            # Kafka's own consumer retries after this error too.
            self._retry(error_for(code))
        else:
            self._recover(error_for(code))

    def _skip_what_is_gone(self) -> None:
        try:
            bounds = self._lookup.bounds()
        except KafkaError as error:
            self._recover(error)
            return
        if bounds.leader.epoch < self._leader.epoch or bounds.earliest <= self._offset <= bounds.end:
            # The bounds are of another leader than the response: one of them is not the leader any more.
            self._retry(error_for(ErrorCode.OFFSET_OUT_OF_RANGE))
        elif bounds.earliest > self._offset:
            self._skip_to(bounds.earliest, f"{self._name} now begins at offset {bounds.earliest}")
        else:
            self._skip_to(self._wanted.end, f"{self._name} no longer reaches offset {self._offset}")

    def _skip_to(self, offset: int, why: str) -> None:
        offset = min(offset, self._wanted.end)
        loss = Loss(self._wanted.topic, self._wanted.partition, self._offset, offset)
        self._losses.report(why, [loss], f"Offsets {self._offset} to {offset - 1} of {self._name} are gone: {why}")
        self._offset = offset

    def _recover(self, error: KafkaError) -> None:
        """Prepare a retry after a retriable error; raise any other error."""
        if not is_retriable(error):
            raise denied(error, Access("Read", "topic", self._wanted.topic))
        self._retry(error)

    def _retry(self, error: KafkaError) -> None:
        self._drop_connection()
        if not self._is_patient():
            raise self._no_progress(str(error))
        self._sleep(_RETRY_PAUSE_S)
        try:
            found = self._lookup.leader()
        except KafkaError as unknown:
            if unknown.code in _TOPIC_IS_ANOTHER:
                self._doubt("the topic was deleted")
            elif not is_retriable(unknown):
                raise
            return
        if found.topic_id != self._leader.topic_id:
            self._doubt("the topic was deleted and another topic has its name")
            return
        self._another_since_s = None
        if found.epoch >= self._leader.epoch:
            self._leader = found

    def _doubt(self, why: str) -> None:
        """End the range if the metadata has not had the task's topic for so long that it cannot be stale."""
        now_s = self._clock()
        if self._another_since_s is None:
            self._another_since_s = now_s
        if now_s - self._another_since_s >= STALE_S:
            self._skip_to(self._wanted.end, why)

    def _is_patient(self) -> bool:
        return (self._clock() - self._last_progress_s) * 1000 < self._options.poll_timeout_ms

    def _no_progress(self, why: str, advice: str = "") -> NoProgress:
        return NoProgress(
            f"Cannot read offset {self._offset} of {self._name} (before {self._wanted.end}): "
            f"{why} for {self._options.poll_timeout_ms} ms ({self._options.words.patience}){advice}"
        )

    def _about_transactions(self) -> str:
        return f"; `barnabas txn doctor` says whose it is, and {self._options.words.uncommitted} does not wait"

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _name(self) -> str:
        return f"{self._wanted.topic}-{self._wanted.partition}"


def _fetched(response: Any, isolation: IsolationLevel) -> _Fetched:
    if response.error_code:
        return _Fetched(ErrorCode(response.error_code), memoryview(b""), [], False)
    ((answer,),) = [topic.partitions for topic in response.responses]
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
    committed_only = isolation is IsolationLevel.READ_COMMITTED
    return _Fetched(
        ErrorCode(answer.error_code),
        memoryview(answer.records or b""),
        aborted if committed_only else [],
        committed_only and answer.last_stable_offset < answer.high_watermark,
    )
