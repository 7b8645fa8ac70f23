"""The file of a log's producers.

    .snapshot, big-endian: Kafka's ProducerSnapshot, version 1
        0   2  version = 1
        2   4  crc = CRC-32C of everything after it
        6   4  entry count
       10  46  per entry: producerId 8, producerEpoch 2, lastSequence 4, lastOffset 8, offsetDelta 4, timestamp 8,
               coordinatorEpoch 4, currentTxnFirstOffset 8
        …      only ours; Kafka's reader stops before it: how many batches (4), then for each
               older batch: producerId 8, lastSequence 4, lastOffset 8, offsetDelta 4, timestamp 8

Kafka's format keeps one batch per producer, so after a clean restart a broker does not recognise a retry of the last but
one, and the producer fails. The part behind the entries, under the same checksum, keeps all five; it is only there if needed.

An incomplete file counts as missing; see `producer_state` for the crash argument.

Source: Kafka's `ProducerStateManager` (ProducerSnapshot), KIP-98.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from barnabas.log.producer_state_entry import NO_OFFSET, BatchMetadata, ProducerStateEntry
from barnabas.records.checksum import crc32c
from barnabas.records.record_batch import NO_SEQUENCE

SNAPSHOT_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_OLDER = struct.Struct(">qiqiq")
_COUNT = struct.Struct(">i")
CRC_END = 6


class CorruptSnapshot(ValueError):
    """The file is not a complete snapshot."""


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Encode producers as Kafka's ProducerSnapshot, with their older batches behind it."""
    count = 0
    body = bytearray()
    older = bytearray()
    for entry in entries:
        count += 1
        last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, NO_OFFSET, 0, entry.last_timestamp)
        body += _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for batch in list(entry.batches)[:-1]:
            older += _OLDER.pack(entry.producer_id, *batch)
    if older:
        body += _COUNT.pack(len(older) // _OLDER.size) + older
    checked = _COUNT.pack(count) + body
    return _HEAD.pack(SNAPSHOT_VERSION, crc32c(checked), count) + body


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Decode a snapshot, Kafka's or ours.

    Raises:
        CorruptSnapshot: wrong length, version or checksum.
    """
    if len(data) < _HEAD.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few for a snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"unknown snapshot version {version}")
    if crc32c(memoryview(data)[CRC_END:]) != crc:
        raise CorruptSnapshot("the snapshot fails its checksum")
    position = _HEAD.size
    if count < 0 or position + count * _ENTRY.size > len(data):
        raise CorruptSnapshot(f"{count} entries do not fit the file")
    entries: dict[int, ProducerStateEntry] = {}
    last_batches: dict[int, BatchMetadata] = {}
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, position)
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn_first_offset = fields
        position += _ENTRY.size
        entry = entries[producer_id] = ProducerStateEntry(producer_id, epoch)
        entry.last_timestamp = timestamp
        entry.coordinator_epoch = coordinator_epoch
        entry.txn_first_offset = txn_first_offset
        if last_offset >= 0:
            last_batches[producer_id] = BatchMetadata(last_sequence, last_offset, delta, timestamp)
    if len(data) - position >= _COUNT.size:
        (older,) = _COUNT.unpack_from(data, position)
        position += _COUNT.size
        if older < 0 or position + older * _OLDER.size != len(data):
            raise CorruptSnapshot(f"{older} older batches do not fit the file")
        for producer_id, *batch in _OLDER.iter_unpack(data[position:]):
            if producer_id in entries:
                entries[producer_id].batches.append(BatchMetadata(*batch))
    for producer_id, last in last_batches.items():
        entries[producer_id].batches.append(last)
    return list(entries.values())
