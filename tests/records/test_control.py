"""Control batches: markers as Kafka writes them, the quorum's messages, unknown types."""

import pytest

from barnabas.protocol.messages import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_marker,
    control_type,
    parse_control_record,
)
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import Record, check_records
from barnabas.records.record_batch import check_batch


@pytest.mark.parametrize("commit", [True, False])
def test_end_transaction_marker(commit: bool) -> None:
    batch = build_end_transaction_marker(
        commit=commit, coordinator_epoch=7, producer_id=55, producer_epoch=2, timestamp=99, base_offset=3
    )
    header = check_batch(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (55, 2, -1)
    assert (header.base_offset, header.partition_leader_epoch) == (3, -1)
    (record,) = check_records(batch)
    assert record.key == (b"\0\0\0\1" if commit else b"\0\0\0\0")
    assert record.value == b"\0\0" + b"\0\0\0\7"
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    assert parse_control_record(record) == (kind, EndTransactionMarker(7))


def test_a_marker_has_offset_0_until_it_is_appended() -> None:
    batch = build_end_transaction_marker(
        commit=True, coordinator_epoch=7, producer_id=55, producer_epoch=2, timestamp=99
    )
    assert check_batch(batch).base_offset == 0


def test_leader_change_in_both_versions() -> None:
    for version in (0, 1):
        voter = LeaderChangeMessage.Voter(voter_id=1)
        message = LeaderChangeMessage(version=version, leader_id=1, voters=[voter], granting_voters=[voter])
        batch = build_control_batch([(ControlRecordType.LEADER_CHANGE, message)], timestamp=5, leader_epoch=4)
        header = check_batch(batch)
        assert header.is_control
        assert not header.is_transactional
        assert header.partition_leader_epoch == 4
        (record,) = check_records(batch)
        assert record.key == b"\0\0\0\2"
        assert parse_control_record(record) == (ControlRecordType.LEADER_CHANGE, message)


def test_several_in_one_batch_as_a_snapshot_begins() -> None:
    messages = [
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(version=0, last_contained_log_timestamp=12)),
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(version=0, k_raft_version=1)),
        (ControlRecordType.KRAFT_VOTERS, VotersRecord(version=0, voters=[])),
    ]
    batch = build_control_batch(messages, timestamp=5)
    assert check_batch(batch).partition_leader_epoch == -1
    assert [parse_control_record(record) for record in check_records(batch)] == messages


def test_a_message_of_a_negative_version_is_refused() -> None:
    value = b"\xff\xff" + LeaderChangeMessage(version=1, leader_id=1).encode(1)[2:]
    with pytest.raises(InvalidRecord):
        parse_control_record(Record(0, 0, b"\0\0\0\2", value, []))


def test_a_snapshot_ends_with_its_footer() -> None:
    footer = SnapshotFooterRecord(version=0)
    (record,) = check_records(build_control_batch([(ControlRecordType.SNAPSHOT_FOOTER, footer)], timestamp=5))
    assert record.key == b"\0\0\0\4"
    assert parse_control_record(record) == (ControlRecordType.SNAPSHOT_FOOTER, footer)


def test_unknown_types_are_skipped_not_refused() -> None:
    assert parse_control_record(Record(0, 0, b"\0\0\0\x63", b"whatever", [])) == (ControlRecordType.UNKNOWN, None)
    assert control_type(b"\0\1\0\1more") is ControlRecordType.COMMIT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
        (b"\0\0\0\2", b"\0\0\0"),
        (b"\0\0\0\2", b"\xff\xff\0\0\0\0\0\0"),
    ],
)
def test_malformed(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        parse_control_record(Record(0, 0, key, value, []))
