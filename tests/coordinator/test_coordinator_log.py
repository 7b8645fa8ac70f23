"""Records as bytes: the exact layout, and what cannot be read."""

from __future__ import annotations

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde, UnknownRecordType, batches_of
from barnabas.group.classic.records import group_metadata_tombstone
from barnabas.group.offset_records import offset_commit_record, offset_commit_tombstone
from barnabas.group.offset_store import OffsetAndMetadata
from barnabas.protocol.errors import MalformedMessage
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header

SERDE = RecordSerde("group")
OFFSET = OffsetAndMetadata(committed_offset=7, leader_epoch=2, metadata="m", commit_timestamp_ms=9)


def test_offset_commit_bytes() -> None:
    key, value = SERDE.encode(offset_commit_record("gr", "t", 3, OFFSET))
    assert key == (
        b"\x00\x01"  # record type: offset commit
        b"\x00\x02gr"  # group
        b"\x00\x01t"  # topic
        b"\x00\x00\x00\x03"  # partition
    )
    assert value == (
        b"\x00\x04"  # value version
        b"\x00\x00\x00\x00\x00\x00\x00\x07"  # offset
        b"\x00\x00\x00\x02"  # leader epoch
        b"\x02m"  # metadata, compact
        b"\x00\x00\x00\x00\x00\x00\x00\x09"  # commit timestamp
        b"\x00"  # no topic id, no tags
    )


def test_topic_id_is_a_tag() -> None:
    offset = OffsetAndMetadata(7, 2, "m", 9, topic_id=bytes(range(16)))
    _, value = SERDE.encode(offset_commit_record("gr", "t", 3, offset))
    assert value is not None
    assert value.endswith(b"\x01\x00\x10" + bytes(range(16)))


def test_an_expiry_needs_version_1() -> None:
    offset = OffsetAndMetadata(7, -1, "m", 9, expire_timestamp_ms=11)
    _, value = SERDE.encode(offset_commit_record("gr", "t", 3, offset))
    assert value == (
        b"\x00\x01"  # value version
        b"\x00\x00\x00\x00\x00\x00\x00\x07"  # offset
        b"\x00\x01m"  # metadata
        b"\x00\x00\x00\x00\x00\x00\x00\x09"  # commit timestamp
        b"\x00\x00\x00\x00\x00\x00\x00\x0b"  # expire timestamp
    )


def test_tombstones() -> None:
    assert SERDE.encode(offset_commit_tombstone("g", "t", 0))[1] is None
    assert SERDE.encode(group_metadata_tombstone("g")) == (b"\x00\x02\x00\x01g", None)


def test_round_trip() -> None:
    record = offset_commit_record("gr", "t", 3, OFFSET)
    assert SERDE.decode(*SERDE.encode(record)) == record


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\x00\x63", b"\x00\x00"), (b"\x00\x02\x00\x01g", b"\x00\x63"), (b"\xff\xff", None)],
    ids=["type", "value version", "negative type"],
)
def test_unknown_types(key: bytes, value: bytes | None) -> None:
    with pytest.raises(UnknownRecordType):
        SERDE.decode(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\x00\x02\x00\x05g", None),
        (b"\x00\x02\x00\x01g", b""),
        (b"\x00\x02\x00\x01g", b"\x00\x03"),
    ],
    ids=["no type", "half a type", "short key", "no version", "short value"],
)
def test_broken_records(key: bytes, value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        SERDE.decode(key, value)


def test_batches() -> None:
    records = [offset_commit_record("gr", "t", index, OFFSET) for index in range(10)]
    whole = list(batches_of(records, SERDE, now_ms=5, max_batch_bytes=200, atomic=True))
    assert [len(part) for part, _ in whole] == [10]
    parts = list(batches_of(records, SERDE, now_ms=5, max_batch_bytes=200, atomic=False))
    assert [record for part, _ in parts for record in part] == records
    assert all(len(batch) <= 200 for _, batch in parts)
    (packed,) = batches_of(records, SERDE, now_ms=5, max_batch_bytes=200, atomic=True, compression=Compression.GZIP)
    assert read_header(packed[1], 0).compression == Compression.GZIP
    assert [SERDE.decode(r.key or b"", r.value) for r in iter_records(packed[1])] == records
