"""One fetch of one partition: its batches as entries, in the order of their offsets.

A broker returns with read_committed which transactions in the response were aborted. A batch is of an aborted one from the transaction's
first offset on, until the marker of its producer. Above the last stable offset nothing is decided, and batches are fetched with
read_uncommitted.

Sources: Fetch (1); KIP-98, KIP-516 (topic ids), KIP-74 (at least one batch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.client.outcome import outcome_of, result
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.errors import CorruptRecord, RecordError
from barnabas.records.record import Record, check_records
from barnabas.records.record_batch import BatchHeader, iter_batches

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""A batch that opens into more is damaged for a search: a few bytes may claim gigabytes."""
_LAST_FETCH_BY_NAME = 12


class State(Enum):
    """The outcome of a record's transaction; a record outside of transactions is committed."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    HELD_BACK = "held_back"


class Found(NamedTuple):
    """A record, and the batch that it came in."""

    partition: int
    record: Record
    batch: BatchHeader
    state: State


class Entry(NamedTuple):
    """The content of one or more offsets.

    Attributes:
        first, last: its offsets.
        timestamp: of the record, or of the damaged batch.
        found: None in a damaged batch.
        damage: why the batch cannot be read.
    """

    first: int
    last: int
    timestamp: int
    found: Found | None
    damage: str | None = None


class Piece(NamedTuple):
    """The entries of a part of the log, in the order of their offsets.

    Attributes:
        first, reach: all offsets from the first one on, and below the other, are accounted for.
        size: bytes of the batches.
    """

    entries: list[Entry]
    first: int
    reach: int
    size: int


class Fetched(NamedTuple):
    """A response.

    Attributes:
        records: whole batches, the first of which may begin before the offset.
        aborted: the first offsets of aborted transactions, by producer id.
        is_decided: with read_committed; all records are committed or aborted.
        log_start: the first offset that is not removed; a batch may begin before it. -1 if the broker does not say.
    """

    records: memoryview
    aborted: Mapping[int, Sequence[int]]
    is_decided: bool
    log_start: int = -1


def fetch(
    cluster: Cluster, where: TopicPartition, topic_id: bytes, offset: int, below: int, *, decided: bool, most_bytes: int
) -> Fetched:
    """Fetch batches of a partition from an offset on: at least one, unless no batch begins in front of `below`.

    Args:
        topic_id: of the topic that is meant, so that another one under its name is an error; zeros if it has none.
        below: a last stable offset or high watermark that the partition had.
        decided: whether to fetch with read_committed.
        most_bytes: of the response, unless its first batch is larger.

    Raises:
        KafkaError: the leader returns an error, or does not know yet that these offsets are committed.
    """
    connection = cluster.connection(result(cluster.leaders([where])[where]))
    request_class = messages.FetchRequest
    has_id = topic_id != bytes(ZERO_UUID)
    version = connection.version_for(request_class, None if has_id else _LAST_FETCH_BY_NAME)
    asked = request_class.FetchPartition(partition=where.partition, fetch_offset=offset, partition_max_bytes=most_bytes)
    topic = (
        request_class.FetchTopic(topic=where.topic, partitions=[asked])
        if version <= _LAST_FETCH_BY_NAME
        else request_class.FetchTopic(topic_id=topic_id, partitions=[asked])
    )
    request = request_class(
        # The wanted records are there, or compaction has removed them: there is nothing to wait for.
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most_bytes,
        isolation_level=READ_COMMITTED if decided else READ_UNCOMMITTED,
        topics=[topic],
    )
    response = connection.request(request, version=version)
    if error := outcome_of(response.error_code):
        raise error
    ((answer,),) = [each.partitions for each in response.responses]
    if error := outcome_of(answer.error_code):
        raise error
    readable = answer.last_stable_offset if decided else answer.high_watermark
    if not answer.records and (response.throttle_time_ms or readable < below):
        # A new leader may know later that these records are committed, and a throttled answer has none.
        raise error_for(ErrorCode.REQUEST_TIMED_OUT, f"no records of {where} from offset {offset} on")
    aborted: dict[int, list[int]] = {}
    for each in answer.aborted_transactions or () if decided else ():
        aborted.setdefault(each.producer_id, []).append(each.first_offset)
    return Fetched(memoryview(answer.records or b""), aborted, decided, answer.log_start_offset)


def piece_of(fetched: Fetched, partition: int, offset: int, below: int) -> Piece:
    """Return what a response has between two offsets, and what its first batch has before them and was not removed.

    Raises:
        RecordError: what stands there cannot be told apart as batches, or the first batch is not whole.
    """
    pending = {producer: sorted(offsets, reverse=True) for producer, offsets in fetched.aborted.items()}
    aborting: set[int] = set()
    entries: list[Entry] = []
    first, reach, size = offset, offset, 0
    for position, batch in iter_batches(fetched.records):
        if batch.base_offset >= below:
            reach = below
            break
        state = _state(fetched, batch, pending, aborting)
        if fetched.log_start >= 0:
            first = min(first, max(batch.base_offset, fetched.log_start))
        entries += _entries(fetched.records, position, batch, partition, state, aborting)
        reach = max(reach, min(batch.next_offset, below))
        size += batch.size
    if not fetched.records:
        reach = below
    if reach == offset:
        raise CorruptRecord(f"the broker returned no whole batch at offset {offset}")
    return Piece(entries, first, reach, size)


def _state(fetched: Fetched, batch: BatchHeader, pending: dict[int, list[int]], aborting: set[int]) -> State:
    if not fetched.is_decided:
        return State.HELD_BACK
    offsets = pending.get(batch.producer_id)
    while offsets and offsets[-1] <= batch.base_offset:
        offsets.pop()
        aborting.add(batch.producer_id)
    if batch.is_transactional and not batch.is_control and batch.producer_id in aborting:
        return State.ABORTED
    return State.COMMITTED


def _entries(
    records: memoryview, position: int, batch: BatchHeader, partition: int, state: State, aborting: set[int]
) -> list[Entry]:
    try:
        found = check_records(records, position, max_bytes=DECOMPRESSED_BYTES_MAX)
        if batch.is_control and any(control_type(each.key) is ControlRecordType.ABORT for each in found):
            aborting.discard(batch.producer_id)
    except RecordError as error:
        return [Entry(batch.base_offset, batch.last_offset, batch.max_timestamp, None, str(error))]
    return [Entry(each.offset, each.offset, each.timestamp, Found(partition, each, batch, state)) for each in found]
