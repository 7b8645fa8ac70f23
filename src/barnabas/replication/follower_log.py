"""A follower's log: it appends the leader's records, and truncates records that the leader does not have.

    leader     epoch 1: 0 ── 5      epoch 3: 5 ── 9
    follower   epoch 1: 0 ───── 7   epoch 2: 7 ── 8      fetches from 8, last epoch 2
                            └ the leader answers: epoch 1 ends at 5. The follower truncates to 5 and fetches again.

- The high watermark follows the leader's up to the log's own end. It never goes back, except by a truncation: what was committed once
  stays committed, even if a new leader does not know it yet. (Kafka lowers it to the leader's.)
- A truncation below the high watermark happens only after an unclean election, or if a committed record was lost. It is logged.
- The log start follows the leader's.

Source: Kafka's `ReplicaFetcherThread.processPartitionData`, `AbstractFetcherThread.getOffsetTruncationState`,
`Partition.appendRecordsToFollowerOrFutureReplica`; KIP-101, KIP-279, KIP-595.
"""

from __future__ import annotations

import logging

from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.messages import FetchResponse
from barnabas.records.record_batch import BATCH_OVERHEAD, iter_batches

logger = logging.getLogger(__name__)

__all__ = ["append_fetched", "begin_to_follow", "truncate_to_divergence", "truncate_to_end", "truncate_to_start"]


def begin_to_follow(log: PartitionLog) -> None:
    """Truncate a log without leader epochs to its high watermark: nothing can show where it diverges.

    Raises:
        KafkaStorageError: the disk failed.
    """
    if log.latest_epoch < 0:
        _truncate(log, log.high_watermark)


def append_fetched(log: PartitionLog, data: FetchResponse.PartitionData, leader_epoch: int) -> bool:
    """Append an answer's records, and follow the leader's high watermark and log start; return whether anything moved.

    Args:
        leader_epoch: that the request named.

    Raises:
        RecordError: the records are not valid; none is appended.
        KafkaStorageError: the disk failed.
    """
    before = (log.log_start_offset, log.high_watermark, log.log_end_offset)
    records = data.records
    if records:
        assert isinstance(records, bytes | bytearray | memoryview), "a decoded answer has bytes"
        _start_at_first_batch(log, records, data.log_start_offset)
        log.append_as_follower(records, leader_epoch)
    log.high_watermark = max(log.high_watermark, _known_committed(log, data.high_watermark))
    log_start_offset = min(data.log_start_offset, log.high_watermark)
    if log_start_offset > log.log_start_offset:
        log.delete_records_before(log_start_offset)
    return before != (log.log_start_offset, log.high_watermark, log.log_end_offset)


def _known_committed(log: PartitionLog, leader_high_watermark: int) -> int:
    """Return the offset up to which this log has records that the leader knows to be committed."""
    return min(leader_high_watermark, log.log_end_offset)


def _start_at_first_batch(log: PartitionLog, records: bytes | bytearray | memoryview, leader_start_offset: int) -> None:
    """Start the log again at the first batch of an answer, if it begins before the log's end and no record of the log is still needed.

    DeleteRecords may move the leader's log start into a batch. (Kafka does so only if the log is empty; else the partition fails.)
    """
    end = log.log_end_offset
    if log.log_start_offset < end and leader_start_offset < end:
        return
    if len(records) < BATCH_OVERHEAD:
        return
    _, first = next(iter_batches(records), (0, None))
    if first is not None and first.base_offset < end < first.next_offset:
        log.truncate_fully_and_start_at(first.base_offset)


def truncate_to_divergence(log: PartitionLog, leader_epoch: int, end_offset: int) -> None:
    """Truncate to the last offset up to which this log and the leader's may be equal; the next answer shows whether they are.

    Args:
        leader_epoch, end_offset: the leader's largest epoch that is not above the log's last one, and where it ends at the leader.

    Raises:
        KafkaStorageError: the disk failed.
    """
    own_epoch, own_end_offset = log.end_offset_for_epoch(leader_epoch)
    if own_epoch == leader_epoch:
        end_offset = min(end_offset, own_end_offset)
    elif own_epoch >= 0:
        # The leader's epoch is unknown here, so the two logs part at the end of the epoch before it, or earlier.
        end_offset = own_end_offset
    _truncate(log, min(end_offset, log.log_end_offset))


def truncate_to_end(log: PartitionLog, leader_end_offset: int) -> bool:
    """Truncate to the leader's log end if this log goes beyond it; return whether it did.

    Raises:
        KafkaStorageError: the disk failed.
    """
    if leader_end_offset >= log.log_end_offset:
        return False
    _truncate(log, leader_end_offset)
    return True


def truncate_to_start(log: PartitionLog, leader_start_offset: int) -> bool:
    """Discard a log that ends before the leader's begins, and start where the leader's does; return whether it did.

    Raises:
        KafkaStorageError: the disk failed.
    """
    if leader_start_offset <= log.log_end_offset:
        return False
    logger.info(
        "%s: starts again at offset %d: the leader has deleted the records from %d on",
        log.name,
        leader_start_offset,
        log.log_end_offset,
    )
    log.truncate_fully_and_start_at(leader_start_offset)
    return True


def _truncate(log: PartitionLog, offset: int) -> None:
    high_watermark, end = log.high_watermark, log.log_end_offset
    log.truncate_to(offset)
    if log.log_end_offset < high_watermark:
        logger.warning(
            "%s: truncated from offset %d to %d, below the high watermark %d: the leader does not have these committed records",
            log.name,
            end,
            log.log_end_offset,
            high_watermark,
        )
    elif log.log_end_offset < end:
        logger.info("%s: truncated from offset %d to %d, as the leader's log", log.name, end, log.log_end_offset)
