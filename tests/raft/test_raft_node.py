"""One voter's quorum: election, the epoch's first records, the high watermark."""

from __future__ import annotations

import pytest

from barnabas.raft.election_state import ElectionState
from barnabas.raft.raft_node import MAX_BATCH_BYTES, BatchTooLarge, QuorumNotSupported, RaftNode, Ready
from barnabas.raft.roles import Role
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header

DIRECTORY = b"d" * 16


def node(**fields: object) -> RaftNode:
    defaults: dict[str, object] = {
        "node_id": 1,
        "directory_id": DIRECTORY,
        "voters": VoterSet.of([Voter(1, DIRECTORY)]),
        "election": ElectionState(),
        "end_offset": 0,
        "last_epoch": 0,
    }
    return RaftNode(**(defaults | fields))  # type: ignore[arg-type]


def control_types(batch: bytearray) -> list[ControlRecordType]:
    return [parse_control_record(record).type for record in iter_records(batch)]


def test_a_sole_voter_leads_a_new_epoch_at_once() -> None:
    raft = node()
    ready = raft.start(now_ms=5)
    assert raft.role is Role.LEADER
    assert ready.election == ElectionState(epoch=1, leader_id=1)
    assert ready.flush
    (batch,) = ready.batches
    assert control_types(batch) == [ControlRecordType.LEADER_CHANGE]
    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.is_control) == (0, 1, True)
    assert repr(raft) == "<RaftNode id=1 Leader epoch=1 high_watermark=-1 end=1>"


def test_the_epoch_is_one_more_than_any_before() -> None:
    raft = node(election=ElectionState(epoch=6, leader_id=1), end_offset=40, last_epoch=6)
    assert raft.start(0).election == ElectionState(epoch=7, leader_id=1)
    assert raft.epoch_start_offset == 40


def test_the_log_knows_an_epoch_that_the_file_has_lost() -> None:
    assert node(election=ElectionState(), end_offset=40, last_epoch=6).start(0).election == ElectionState(7, 1)


def test_the_first_epoch_writes_the_voters_that_only_the_directory_knew() -> None:
    (batch,) = node(write_voters=True).start(0).batches
    assert control_types(batch) == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]


def test_nothing_is_committed_before_the_flush() -> None:
    raft = node()
    raft.start(0)
    assert raft.high_watermark == -1
    raft.append([b"x", b"y"], 0)
    assert raft.high_watermark == -1
    assert raft.flushed(1, 0) == Ready(high_watermark=1, leader_epoch=1)
    assert raft.flushed(3, 0) == Ready(high_watermark=3)
    assert raft.flushed(3, 0) == Ready()


def test_leadership_is_told_once_when_the_epochs_first_record_is_committed() -> None:
    raft = node(election=ElectionState(3), end_offset=10, last_epoch=3)
    raft.start(0)
    raft.append([b"x"], 0)
    told = [raft.flushed(offset, 0).leader_epoch for offset in (11, 12)]
    assert told == [4, None]


def test_appended_records_are_one_batch_at_the_end_of_the_log() -> None:
    raft = node(end_offset=9)
    raft.start(0)
    (batch,) = raft.append([b"a", b"b", b"c"], now_ms=77).batches
    header = read_header(batch)
    assert (header.base_offset, header.record_count, header.base_timestamp) == (10, 3, 77)
    assert [record.value for record in iter_records(batch)] == [b"a", b"b", b"c"]


def test_a_batch_too_large_to_be_atomic_is_refused_and_changes_nothing() -> None:
    raft = node()
    raft.start(0)
    before = raft.end_offset
    with pytest.raises(BatchTooLarge):
        raft.append([b"x" * (MAX_BATCH_BYTES // 2)] * 2, 0)
    assert raft.end_offset == before


def test_other_voters_are_refused_in_words() -> None:
    with pytest.raises(QuorumNotSupported, match="can only be the sole voter of its quorum; the voters are \\[1, 2\\]"):
        node(voters=VoterSet.of([Voter(1, DIRECTORY), Voter(2, DIRECTORY)])).start(0)
    with pytest.raises(QuorumNotSupported, match="another metadata directory"):
        node(voters=VoterSet.of([Voter(1, b"o" * 16)])).start(0)


def test_describe() -> None:
    raft = node()
    raft.start(0)
    raft.flushed(1, 0)
    description = raft.describe(now_ms=9)
    assert (description.leader_id, description.leader_epoch, description.high_watermark) == (1, 1, 1)
    assert [(v.id, v.end_offset, v.last_caught_up_ms) for v in description.voters] == [(1, 1, 9)]
    assert description.observers == ()
    assert raft.describe(now_ms=10).voters[0].last_fetch_ms == 10
    # A description changes nothing.
    assert (description.voters[0].last_fetch_ms, raft.progress[1].last_fetch_ms) == (9, 0)
