"""A small log with a past, and what must hold of it whatever happened to its files."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once

ROOT = "/data"
TOPIC = "orders"
TOPIC_ID = Uuid(bytes(range(16)))
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150)
PRODUCER_ID = 7
RECORDS_PER_BATCH = 2


def now_ms() -> int:
    return NOW_MS


def batch(
    first: int,
    count: int = RECORDS_PER_BATCH,
    *,
    producer_id: int = PRODUCER_ID,
    epoch: int = 0,
    sequence: int | None = None,
    compression: Compression = Compression.NONE,
    timestamp: int | None = None,
    transactional: bool = False,
) -> bytearray:
    """A batch whose records tell by themselves which offsets they ought to have."""
    records = [
        (NOW_MS + first + i if timestamp is None else timestamp, b"key-%d" % (first + i), b"value-%d" % (first + i), ())
        for i in range(count)
    ]
    return build_batch(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=(first if sequence is None else sequence) if producer_id >= 0 else -1,
        transactional=transactional,
    )


def append(log: PartitionLog, batches: int, *, leader_epoch: int = 0) -> None:
    """Appends batches of the one producer, whose sequence equals the offset."""
    for _ in range(batches):
        log.append_as_leader(batch(log.log_end_offset), leader_epoch)


def manager(disk: SimDisk, **settings: object) -> LogManager:
    opened = LogManager(disk, ROOT, now_ms=now_ms, config_for=lambda _: CONFIG, **settings)  # type: ignore[arg-type]
    at_once(opened.open())
    return opened


def running(disk: SimDisk, broker_epoch: int) -> LogManager:
    """Return the logs of a broker that has registered, and appended to a log since."""
    opened = manager(disk)
    at_once(opened.claim.prepare(broker_epoch))
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 3)
    return opened


def read_all(log: PartitionLog, *, max_bytes: int = 300) -> list[Record]:
    """Reads from the log's start to its end in small steps."""
    return list(read_from(log, log.log_start_offset, max_bytes=max_bytes))


def read_from(log: PartitionLog, offset: int, *, max_bytes: int = 300) -> Iterable[Record]:
    end = log.log_end_offset
    while offset < end:
        found = log.read(offset, max_bytes, max_offset=end)
        assert found.size, f"nothing at {offset} in {log!r}"
        data = found.read()
        assert len(data) == found.size
        after = offset
        for position, header in iter_batches(data):
            for record in iter_records(data, position):
                if record.offset >= offset:
                    yield record
            after = header.next_offset
        assert after > offset
        offset = after


def assert_consistent(log: PartitionLog, *, flushed: int, start: int = 0) -> None:
    """Checks the log against what its own records say; it must still hold everything below `flushed`."""
    assert log.log_end_offset >= flushed, f"{log!r} lost flushed records below {flushed}"
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
    assert log.recovery_point <= log.log_end_offset
    records = read_all(log)
    assert [record.offset for record in records] == list(range(log.log_start_offset, log.log_end_offset))
    for record in records:
        assert record.key == b"key-%d" % record.offset
        assert record.value == b"value-%d" % record.offset
        assert record.timestamp == NOW_MS + record.offset
    # One record of each batch, its first and its second by turns: a lookup finds the batch by the indexes, and reads the rest.
    for record in records:
        if record.offset % (2 * RECORDS_PER_BATCH) not in (0, RECORDS_PER_BATCH + 1):
            continue
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        assert found[:2] == (record.offset, record.timestamp)
    if records:
        latest = log.max_timestamp_offset()
        assert latest is not None
        assert latest.offset == log.log_end_offset - 1
        [producer] = log.producers()
        assert producer.last_offset == log.log_end_offset - 1
        assert producer.last_sequence == log.log_end_offset - 1
        # A retry of the last batch is recognised, and the next batch is accepted.
        last = producer.batches[-1]
        again = log.append_as_leader(batch(last.first_offset, last.offset_delta + 1), log.latest_epoch)
        assert again.is_duplicate
        assert again.base_offset == last.first_offset
    epochs = log.epoch_entries
    assert epochs == sorted(epochs)
    assert all(offset <= log.log_end_offset for _, offset in epochs)
    append(log, 3, leader_epoch=log.latest_epoch + 1)
    assert [record.offset for record in read_all(log)] == list(range(log.log_start_offset, log.log_end_offset))
