"""Read many partitions under one byte limit, for a Fetch request.

    FetchParams ──► Reading ◄── read ◄── FetchPartition, one after the other
                       └──► results, bytes_read, must_respond

- Partitions are read in the given order, each up to its own limit and the rest of the request's. The first batch is returned whole even
  if it is larger than both (KIP-74), else a consumer could never get past it.
- Consumers read below the high watermark; with isolation level read_committed below the last stable offset, and then the result has the
  aborted transactions of the range (KIP-98). Followers read everything.
- From version 11 on consumers may read from any replica. A leader may name one in the consumer's rack, and then returns no records
  (KIP-392).
- A batch is never cut: a read from an offset inside a batch returns the whole batch.
- Records stay in their file: a result has a slice of it.
- A follower that is not in sync gets no records of a throttled partition while the leader's quota is exceeded (KIP-73).
- An error, a diverging epoch or enough bytes end the wait; an unknown topic or partition does so only if all are unknown.

In an incremental session the result has only partitions with changes. One without changes is idle, and the session does not read it
again until the replica changes.

Source: Kafka's `ReplicaManager.readFromLog`, `Partition.fetchRecords`, `FetchParams`; KIP-74, KIP-98, KIP-227, KIP-320, KIP-392, KIP-595.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.log.errors import OffsetOutOfRange
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError, StaleMetadataError
from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import RecordSlice
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.offset_lookup import READ_COMMITTED
from barnabas.replication.partition import Partition
from barnabas.replication.replica_selector import NO_REPLICA
from barnabas.turns import LOG_OPENED, READ

__all__ = ["FetchParams", "PartitionLookup", "Reading"]

READ_UNCOMMITTED = 0
ANY_REPLICA_FETCH_VERSION = 11
CURRENT_LEADER_FETCH_VERSION = 16
NOT_A_FAILURE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Reads with these errors do not count as failed fetch requests, as in Kafka."""
UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

_PartitionData = FetchResponse.PartitionData
# Defaults that nothing changes, shared to save three objects per partition.
_NO_EPOCH = FetchResponse.EpochEndOffset()
_NO_LEADER = FetchResponse.LeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponse.SnapshotId()


class FetchParams(NamedTuple):
    """The part of a Fetch request that applies to all its partitions.

    Attributes:
        replica_id: the follower's node id, -1 for a consumer.
        replica_epoch: the follower's broker epoch, -1 if unknown.
        only_changes: leave out partitions without changes (an incremental session).
        is_read_again: the request waits, and an earlier pass has recorded where the follower's logs end.
        rack: the consumer's, if leaders are to name a replica in it; else empty.
        listener: the name of the consumer's listener.
        may_read: returns whether the sender may read a topic, None for an unknown one; without it everything may be read.
    """

    version: int
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    only_changes: bool = False
    is_read_again: bool = False
    replica_epoch: int = -1
    rack: str = ""
    listener: str = ""
    may_read: Callable[[str | None], bool] | None = None

    def read_again(self) -> FetchParams:
        """Return the parameters of the next pass, after a wait."""
        return self if self.replica_id < 0 else self._replace(is_read_again=True)


class PartitionLookup(Protocol):
    """The ReplicaManager, for reads."""

    def partition_for_fetch(self, wanted: FetchPartition) -> Partition:
        """Return the replica; raise KafkaError if it is not here."""
        ...

    def follower_fetched(self, partition: Partition, replica_id: int, *, has_moved: bool) -> None:
        """Wake the requests that wait for the commit if the follower's fetch has moved the high watermark; see to the ISR."""
        ...

    def preferred_read_replica(self, partition: Partition, fetch_offset: int, params: FetchParams) -> int:
        """Return the replica that a consumer should read from instead of this leader, or -1."""
        ...

    def holds_back(self, partition: Partition) -> bool:
        """Return whether the followers of a partition that are not in sync must wait for the leader's quota."""
        ...


class Reading:
    """One pass over the partitions of a request.

    Args:
        are_others_idle: the request also waits for partitions that are known to be idle.

    Attributes:
        results: each partition with its part of the response, in reading order.
        bytes_left: the rest of the request's limit.
        bytes_read: sum of all records.
        cost: of the last partition, as in `turns`.
    """

    __slots__ = (
        "_committed_only",
        "_lookup",
        "_may_read",
        "_only_changes",
        "_params",
        "_reads_any_replica",
        "_records_progress",
        "_replica_epoch",
        "_replica_id",
        "bytes_left",
        "bytes_read",
        "cost",
        "found_one",
        "has_ended_wait",
        "results",
    )

    def __init__(self, params: FetchParams, lookup: PartitionLookup, *, are_others_idle: bool = False) -> None:
        self._lookup = lookup
        self._params = params
        self._may_read = params.may_read
        self._reads_any_replica = params.replica_id < 0 and params.version >= ANY_REPLICA_FETCH_VERSION
        self._replica_id = params.replica_id
        self._replica_epoch = params.replica_epoch
        self._records_progress = params.replica_id >= 0 and not params.is_read_again
        self._only_changes = params.only_changes
        self._committed_only = params.isolation_level == READ_COMMITTED
        self.bytes_left = params.max_bytes
        self.bytes_read = 0
        self.cost = 0
        self.found_one = are_others_idle
        self.has_ended_wait = False
        self.results: list[tuple[FetchPartition, FetchResponse.PartitionData]] = []

    def __repr__(self) -> str:
        return f"<Reading results={len(self.results)} bytes_read={self.bytes_read} bytes_left={self.bytes_left}>"

    @property
    def must_respond(self) -> bool:
        """Whether waiting is pointless: a partition has an error or diverged, or no partition exists."""
        return self.has_ended_wait or not self.found_one

    def read(self, wanted: FetchPartition) -> bool:
        """Read one partition up to the limits; return whether it is idle. An error is a result and never raised."""
        partition = wanted.partition
        is_new = partition is None
        self.cost = READ
        if self._may_read is not None and not self._may_read(wanted.topic):
            # As in Kafka, a denied partition does not end the wait for the others.
            denied = _failed(self._params, wanted, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            denied.aborted_transactions = []
            self.results.append((wanted, denied))
            return False
        try:
            if partition is None or partition.is_deleted:
                wanted.partition = None
                partition = wanted.partition = self._lookup.partition_for_fetch(wanted)
            self.found_one = True
            if partition.open_log is None:
                self.cost = LOG_OPENED
            data = self._read(wanted, partition)
        except KafkaError as error:
            data = _failed(self._params, wanted, error)
            if error.code not in NOT_A_FAILURE and wanted.partition is not None:
                wanted.partition.topic.traffic.failed_fetches += 1
            # As in Kafka, a partition that never existed does not end the wait for the others.
            if not is_new or error.code not in UNKNOWN:
                self.has_ended_wait = True
        if data is None:
            return True
        self.results.append((wanted, data))
        return False

    def _read(self, wanted: FetchPartition, partition: Partition) -> FetchResponse.PartitionData | None:
        """Return a partition's part of the response, None if the partition is idle.

        Raises: KafkaError.
        """
        partition.topic.traffic.fetches += 1
        if wanted.current_leader_epoch != partition.leader_epoch or not partition.is_leader:
            # In a Fetch any negative epoch means none, as in Kafka; elsewhere only -1.
            current_leader_epoch = max(wanted.current_leader_epoch, -1)
            if self._reads_any_replica:
                partition.check_epoch(current_leader_epoch)
            else:
                partition.check_leader(current_leader_epoch)
        log = partition.log
        high_watermark = log.high_watermark
        end = high_watermark
        if self._params.rack and partition.followers is not None:
            replica_id = self._lookup.preferred_read_replica(partition, wanted.fetch_offset, self._params)
            if replica_id != NO_REPLICA:
                self.has_ended_wait = True
                return _redirected(wanted, log, replica_id)
        if self._replica_id >= 0:
            partition.check_follower(self._replica_id, wanted.current_leader_epoch, self._replica_epoch)
            end = log.log_end_offset
        elif self._committed_only:
            end = log.last_stable_offset
        diverging = None
        if wanted.last_fetched_epoch >= 0:
            diverging = _diverging_epoch(partition, log, wanted)
        records: RecordSlice | None = None
        if diverging is not None:
            self.has_ended_wait = True
        elif wanted.fetch_offset != end and not self._is_held_back(partition):
            records = self._records(wanted, log, end)
        if self._records_progress and diverging is None:
            self._record_progress(wanted, partition)
            # This fetch may have moved it. Otherwise the partition would count as idle, and its session would not read it again.
            high_watermark = log.high_watermark
        if (
            records is None
            and self._only_changes
            and diverging is None
            and wanted.sent_high_watermark == high_watermark
            and wanted.sent_log_start_offset == log.log_start_offset
            and wanted.fetch_offset >= end
        ):
            return None
        aborted = None
        if self._committed_only:
            aborted = [] if records is None else _aborted(log, wanted.fetch_offset, end)
        return _PartitionData(
            partition_index=wanted.index,
            high_watermark=high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging or _NO_EPOCH,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=aborted,
            records=b"" if records is None else records,
        )

    def _is_held_back(self, partition: Partition) -> bool:
        return self._replica_id >= 0 and self._replica_id not in partition.isr and self._lookup.holds_back(partition)

    def _record_progress(self, wanted: FetchPartition, partition: Partition) -> None:
        """Record where a follower's log ends: it has the records of this log up to its fetch offset.

        A follower that diverges, or that fetches outside this log, does not have them (KAFKA-13141). Each request counts once, when it
        arrives: after a wait the follower may have restarted with a shorter log.
        """
        has_moved = partition.update_follower(
            self._replica_id, wanted.fetch_offset, wanted.log_start_offset, self._replica_epoch
        )
        self._lookup.follower_fetched(partition, self._replica_id, has_moved=has_moved)

    def _records(self, wanted: FetchPartition, log: PartitionLog, end: int) -> RecordSlice | None:
        """Read whole batches below `end`, as many bytes as the limits allow; None if the log has no batch to give."""
        offset = wanted.fetch_offset
        if offset > end or offset < log.log_start_offset:
            _check_range(log, wanted)
            return None
        allowed = min(wanted.max_bytes, self.bytes_left)
        if allowed <= 0 and self.bytes_read:
            return None
        records = log.read(offset, max(allowed, 0), max_offset=end, min_one=self.bytes_read == 0)
        size = records.size
        if not size:
            return None
        self.bytes_read += size
        self.bytes_left = max(0, self.bytes_left - size)
        return records


def _check_range(log: PartitionLog, wanted: FetchPartition) -> None:
    """Raise OffsetOutOfRange for an offset outside the log; an offset above the high watermark just has no records yet."""
    if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
        raise OffsetOutOfRange(
            wanted.fetch_offset, log.log_start_offset, log.log_end_offset, f"{wanted.topic}-{wanted.index}"
        )


def _diverging_epoch(
    partition: Partition, log: PartitionLog, wanted: FetchPartition
) -> FetchResponse.EpochEndOffset | None:
    """Return where the reader must truncate its log, None if its last epoch is consistent with this log (KIP-595)."""
    epoch, end_offset = partition.last_offset_for_leader_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(
            wanted.fetch_offset, log.log_start_offset, log.log_end_offset, f"{wanted.topic}-{wanted.index}"
        )
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _redirected(wanted: FetchPartition, log: PartitionLog, replica_id: int) -> FetchResponse.PartitionData:
    """Return the answer that sends a consumer to another replica."""
    return _PartitionData(
        partition_index=wanted.index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        preferred_read_replica=replica_id,
        records=b"",
    )


def _aborted(log: PartitionLog, start: int, end: int) -> list[FetchResponse.AbortedTransaction]:
    return [
        FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in log.aborted_transactions(start, end)
    ]


def _failed(params: FetchParams, wanted: FetchPartition, error: KafkaError) -> FetchResponse.PartitionData:
    """Return a failed partition's part of the response, without offsets."""
    data = _PartitionData(
        partition_index=wanted.index,
        error_code=int(error.code),
        high_watermark=-1,
        log_start_offset=-1,
        # Empty for an unknown topic, null for other errors, as in Kafka.
        aborted_transactions=[] if error.code in UNKNOWN else None,
        records=b"",
    )
    if (
        params.version >= CURRENT_LEADER_FETCH_VERSION
        and isinstance(error, StaleMetadataError)
        and error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        and wanted.partition is not None
    ):
        data.current_leader = FetchResponse.LeaderIdAndEpoch(
            leader_id=wanted.partition.leader, leader_epoch=wanted.partition.leader_epoch
        )
    return data
