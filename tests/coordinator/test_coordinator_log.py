"""Records as bytes: the exact layout, and what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.coordinator.coordinator_log import (
    RecordSerde,
    ReplicaCoordinatorLog,
    UnknownRecordType,
    fields_of,
    lengths_of_batches,
)
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.classic.tombstone import group_metadata_tombstone
from barnabas.group.offset_records import offset_commit_record, offset_commit_tombstone
from barnabas.group.offset_store import OffsetAndMetadata
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.messages import coordinator_key_class, coordinator_value_class
from barnabas.protocol.schema import schema_index
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from tests.protocol.samples import Sampler

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


@pytest.mark.parametrize(
    ("family", "type_id"),
    [(family, int(each)) for family, types in schema_index()["coordinators"].items() for each in types],
)
def test_every_record(family: str, type_id: int) -> None:
    key_class, value_class = coordinator_key_class(family, type_id), coordinator_value_class(family, type_id)
    assert key_class.API_KEY == value_class.API_KEY == type_id
    assert key_class.MIN_VERSION == key_class.MAX_VERSION == 0
    key = Sampler(key_class.NAME).message(key_class.NAME, 0)
    serde = RecordSerde(family)
    for version in range(value_class.MIN_VERSION, value_class.MAX_VERSION + 1):
        value = Sampler(value_class.NAME).message(value_class.NAME, version)
        record = CoordinatorRecord(type_id, key, value, version)
        encoded = serde.encode(record)
        assert (encoded[0][:2], encoded[1][:2] if encoded[1] else None) == (type_id.to_bytes(2), version.to_bytes(2))
        assert serde.decode(*encoded) == record


def test_records_are_split_over_batches_of_limited_size() -> None:
    records = [offset_commit_record("gr", "t", index, OFFSET) for index in range(10)]
    encoded = fields_of(records, SERDE, 5)
    lengths = list(lengths_of_batches(encoded, 200))
    assert sum(lengths) == 10
    assert len(lengths) > 1
    start = 0
    for length in lengths:
        batch = build_batch(encoded[start : start + length])
        assert len(batch) <= 200
        assert [SERDE.decode(r.key or b"", r.value) for r in iter_records(batch)] == records[start : start + length]
        start += length
    assert list(lengths_of_batches(encoded, 10)) == [1] * 10, "a record that is too large has a batch for itself"


def test_a_record_has_version_0_and_a_result_no_records_unless_they_say_so() -> None:
    assert CoordinatorRecord(2, None, None).value_version == 0
    result = CoordinatorResult("answer")
    assert (list(result.records), result.replay, result.atomic, result.on_append) == ([], True, True, None)


def test_the_replicas_are_given_all_that_an_append_needs() -> None:
    calls: list[Any] = []

    class Replicas:
        def append_internal(
            self, topic: str, index: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
        ) -> Any:
            calls.append((topic, index, batch, guard, transaction_version))

        def is_writable_internal(self, topic: str, index: int) -> bool:
            calls.append((topic, index))
            return True

        def read_internal(self, topic: str, index: int, from_offset: int) -> Iterator[bytes]:
            calls.append((topic, index, from_offset))
            return iter([b"batch"])

        def committed_offset_internal(self, topic: str, index: int) -> int:
            return index + 100

        def commit_of_internal(self, topic: str, index: int, last_offset: int) -> Any:
            return topic, index, last_offset

    log = ReplicaCoordinatorLog(Replicas(), "__topic")
    batch, guard = bytearray(b"b"), object()
    log.append(3, batch)
    log.append(4, batch, guard=guard, transaction_version=2)  # type: ignore[arg-type]
    assert log.is_writable(6)
    assert list(log.read(5)) == [b"batch"]
    assert log.committed_offset(7) == 107
    assert log.commit_of(8, 9) == ("__topic", 8, 9)
    assert calls == [("__topic", 3, batch, None, 0), ("__topic", 4, batch, guard, 2), ("__topic", 6), ("__topic", 5, 0)]
