"""Snapshot files: their frame, their size limits, and when they are due (KIP-630)."""

from __future__ import annotations

import pytest

from barnabas.metadata import snapshots
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_batch_loader import load_snapshot
from barnabas.metadata.snapshots import SnapshotPolicy, build_bootstrap, build_voters_checkpoint, snapshot_batches
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.control import parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import check_batch, iter_batches
from tests.metadata.controller_harness import DIRECTORY, ControllerHarness

VOTERS = VoterSet.of([Voter(1, DIRECTORY)])


def build_snapshot(image: MetadataImage) -> bytes:
    """A snapshot of an image whose last record is of time 7."""
    image = image._replace(provenance=image.provenance._replace(last_contained_log_time_ms=7))
    return b"".join(snapshot_batches(image, VotersFrom(2, VOTERS)))


def frame(data: bytes) -> list[str]:
    """What each batch is: its control records, or the number of its records; offsets must be dense."""
    out = []
    expected = 0
    for position, header in iter_batches(data):
        check_batch(data, position)
        assert header.base_offset == expected
        expected = header.next_offset
        records = list(iter_records(data[position : position + header.size]))
        if header.is_control:
            out.append("+".join(parse_control_record(record).type.name for record in records))
        else:
            out.append(str(len(records)))
    return out


def test_bootstrap_checkpoint() -> None:
    data = build_bootstrap(bootstrap_records(), 33, now_ms=5)
    assert frame(data) == ["SNAPSHOT_HEADER", "6", "SNAPSHOT_FOOTER"]
    assert list(load_snapshot(data)) == bootstrap_records()


def test_voters_checkpoint() -> None:
    data = build_voters_checkpoint(VOTERS, now_ms=5)
    assert frame(data) == ["SNAPSHOT_HEADER+KRAFT_VERSION+KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    (_, header), *_ = iter_batches(data)
    voters = parse_control_record(list(iter_records(data[: header.size]))[2]).value
    assert VoterSet.from_record(voters) == VOTERS


def test_an_image_in_batches_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ControllerHarness()
    harness.register()
    harness.create("a", partitions=20)
    monkeypatch.setattr(snapshots, "MAX_BATCH_BYTES", 1000)
    data = build_snapshot(harness.controller.image)
    kinds = frame(data)
    assert kinds[0] == "SNAPSHOT_HEADER+KRAFT_VERSION+KRAFT_VOTERS"
    assert len(kinds) > 4
    assert sum(int(kind) for kind in kinds if kind.isdigit()) == len(list(harness.controller.image.records()))
    assert {(header.partition_leader_epoch, header.max_timestamp) for _, header in iter_batches(data)} == {(1, 7)}
    assert all(header.size <= 1000 for _, header in iter_batches(data))


def test_due_by_size_or_by_age_of_something_new() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=1000)
    assert not policy.is_due(0)
    policy.appended(99)
    assert not policy.is_due(999)
    assert policy.is_due(1000)
    policy.written(1000)
    assert not policy.is_due(5000)
    policy.appended(100)
    assert policy.is_due(1001)


def test_never_by_age_when_the_interval_is_zero() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=0)
    policy.appended(1)
    assert not policy.is_due(10**12)


def test_the_header_has_the_time_of_the_last_record_and_records_the_version_of_their_level() -> None:
    harness = ControllerHarness()
    harness.register()
    harness.create("a")
    image = harness.controller.image
    data = build_snapshot(image._replace(features=image.features._replace(metadata_version=22)))
    (_, header), (position, batch), *_ = iter_batches(data)
    assert parse_control_record(next(iter_records(data[: header.size]))).value.last_contained_log_timestamp == 7
    values = [record.value or b"" for record in iter_records(data[position : position + batch.size])]
    # Frame version, type, version: RegisterBrokerRecord (0) and PartitionRecord (3) as level 22 writes them.
    assert {value[1]: value[2] for value in values if value[1] in (0, 3)} == {0: 3, 3: 1}


def test_an_interval_of_a_millisecond_is_one() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=1)
    assert not policy.is_due(5)
    policy.appended(1)
    assert policy.is_due(6)
