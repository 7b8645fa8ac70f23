"""One voter's quorum: election, the epoch's first records, the high watermark."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.clock import Clock
from barnabas.raft.election_state import ElectionState
from barnabas.raft.raft_node import MAX_BATCH_BYTES, BatchTooLarge, QuorumNotSupported, RaftNode, Ready, ReplicaProgress
from barnabas.raft.roles import Role
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header

DIRECTORY = b"d" * 16


def history(*voters: Voter, offset: int = 0) -> VoterSetHistory:
    return VoterSetHistory(VotersFrom(offset, VoterSet.of(voters)))


def node(**fields: object) -> RaftNode:
    defaults: dict[str, object] = {
        "node_id": 1,
        "directory_id": DIRECTORY,
        "history": history(Voter(1, DIRECTORY)),
        "election": ElectionState(),
        "end_offset": 0,
        "last_epoch": 0,
    }
    return RaftNode(**(defaults | fields))  # type: ignore[arg-type]


def flushed(raft: RaftNode, end_offset: int) -> Ready:
    """End a flush that began when the log ended there."""
    return raft.flushed(raft.flush_token()._replace(end_offset=end_offset), 0)


def control_values(batch: bytearray) -> list[Any]:
    return [parse_control_record(record).value for record in iter_records(batch)]


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
    (change,) = control_values(batch)
    assert (change.version, change.leader_id) == (0, 1)
    assert [voter.voter_id for voter in change.voters] == [1]
    assert [voter.voter_id for voter in change.granting_voters] == [1]
    assert repr(raft) == "<RaftNode id=1 Leader epoch=1 high_watermark=-1 end=1>"


def test_the_epoch_is_one_more_than_any_before() -> None:
    raft = node(election=ElectionState(epoch=6, leader_id=1), end_offset=40, last_epoch=6)
    assert raft.start(0).election == ElectionState(epoch=7, leader_id=1)
    assert raft.epoch_start_offset == 40


def test_an_epoch_begins_at_the_end_of_the_log() -> None:
    raft = node(end_offset=40, last_epoch=6)
    (batch,) = raft.start(0).batches
    assert (read_header(batch).base_offset, read_header(batch).partition_leader_epoch) == (40, 7)
    assert raft.end_offset == 41


def test_the_log_knows_an_epoch_that_the_file_has_lost() -> None:
    assert node(election=ElectionState(), end_offset=40, last_epoch=6).start(0).election == ElectionState(7, 1)


def test_the_first_epoch_writes_the_voters_that_only_the_directory_knew() -> None:
    raft = node(history=history(Voter(1, DIRECTORY), offset=-1))
    (batch,) = raft.start(0).batches
    assert control_types(batch) == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    _, version, voters = control_values(batch)
    assert (version.version, version.k_raft_version) == (0, 1)
    assert VoterSet.from_record(voters) == raft.voters
    assert not raft.history.is_to_write
    assert raft.history.last == VotersFrom(2, raft.voters)


def test_the_voters_of_a_log_have_kraft_version_1() -> None:
    assert node().kraft_version == 1


def test_nothing_is_committed_before_the_flush() -> None:
    raft = node()
    raft.start(0)
    assert raft.high_watermark == -1
    raft.append([b"x", b"y"], 0)
    assert raft.high_watermark == -1
    assert flushed(raft, 1) == Ready(high_watermark=1, leader_epoch=1)
    assert flushed(raft, 3) == Ready(high_watermark=3)
    assert flushed(raft, 3) == Ready()


def test_leadership_is_told_once_when_the_epochs_first_record_is_committed() -> None:
    raft = node(election=ElectionState(3), end_offset=10, last_epoch=3)
    raft.start(0)
    raft.append([b"x"], 0)
    told = [flushed(raft, offset).leader_epoch for offset in (11, 12)]
    assert told == [4, None]


def test_leadership_is_told_in_a_log_that_was_committed_to_its_end() -> None:
    raft = node(election=ElectionState(3), end_offset=10, last_epoch=3, high_watermark=10)
    raft.start(0)
    assert flushed(raft, 11) == Ready(high_watermark=11, leader_epoch=4)


def test_appended_records_are_one_batch_at_the_end_of_the_log() -> None:
    raft = node(end_offset=9)
    raft.start(0)
    ready = raft.append([b"a", b"b", b"c"], now_ms=77)
    assert ready.flush
    (batch,) = ready.batches
    header = read_header(batch)
    assert (header.base_offset, header.record_count, header.base_timestamp) == (10, 3, 77)
    assert header.partition_leader_epoch == 1
    assert [record.value for record in iter_records(batch)] == [b"a", b"b", b"c"]


def test_a_batch_too_large_to_be_atomic_is_refused_and_changes_nothing() -> None:
    raft = node()
    raft.start(0)
    before = raft.end_offset
    with pytest.raises(BatchTooLarge):
        raft.append([b"x" * (MAX_BATCH_BYTES // 2)] * 2, 0)
    assert raft.end_offset == before


def test_eight_megabytes_are_the_most_that_is_atomic() -> None:
    raft = node()
    raft.start(0)
    most = 8 * 1024 * 1024  # Kafka's internal.metadata.max.batch.size.in.bytes
    (batch,) = raft.append([b"x" * (most - 100)], 0).batches
    fits = most - 100 + most - len(batch)
    assert len(raft.append([b"x" * fits], 0).batches[0]) == most
    with pytest.raises(BatchTooLarge):
        raft.append([b"x" * (fits + 1)], 0)


def test_what_the_log_refused_is_appended_nowhere() -> None:
    raft = node()
    raft.start(0)
    raft.append([b"refused", b"too"], 0)
    raft.append_failed(1)
    (batch,) = raft.append([b"x"], 0).batches
    assert read_header(batch).base_offset == 1


def test_other_voters_are_refused_in_words() -> None:
    with pytest.raises(QuorumNotSupported, match=r"can only be the sole voter of its quorum; the voters are 1, 2$"):
        node(history=history(Voter(1, DIRECTORY), Voter(2, DIRECTORY))).start(0)
    with pytest.raises(QuorumNotSupported, match="another metadata directory"):
        node(history=history(Voter(1, b"o" * 16))).start(0)


def test_describe() -> None:
    raft = node()
    raft.start(0)
    flushed(raft, 1)
    description = raft.describe(Clock(lambda: 9, lambda: 5))
    assert (description.leader_id, description.leader_epoch, description.high_watermark) == (1, 1, 1)
    assert [(v.id, v.end_offset, v.last_caught_up_ms) for v in description.voters] == [(1, 1, 9)]
    assert [v.directory_id for v in description.voters] == [DIRECTORY]
    assert description.observers == ()
    assert raft.describe(Clock(lambda: 10, lambda: 5)).voters[0].last_fetch_ms == 10
    # A description changes nothing.
    assert (description.voters[0].last_fetch_ms, raft.progress[1].last_fetch_ms) == (9, 0)


def test_a_description_has_the_progress_of_others_in_wall_time() -> None:
    raft = node()
    raft.start(0)
    raft.progress[2] = ReplicaProgress(2, b"o" * 16, 1, last_fetch_ms=40, last_caught_up_ms=-1)
    *_, other = raft.describe(Clock(lambda: 1_000_000, lambda: 100)).voters
    assert (other.end_offset, other.last_fetch_ms, other.last_caught_up_ms) == (1, 1_000_000 - 60, -1)


def test_a_replica_that_never_fetched_has_no_end_and_no_times() -> None:
    replica = ReplicaProgress(2, DIRECTORY)
    assert (replica.end_offset, replica.last_fetch_ms, replica.last_caught_up_ms) == (-1, -1, -1)


def test_a_leader_that_resigns_stands_again_in_an_epoch_that_it_has_not_led() -> None:
    raft = node()
    raft.start(0)
    raft.append([b"x"], 0)
    assert raft.resign() == Ready(left_epoch=1)
    assert raft.role is Role.RESIGNED
    assert flushed(raft, 2) == Ready()  # A node that does not lead commits nothing by its own flush.
    ready = raft.campaign(0)
    assert ready.election == ElectionState(epoch=3, leader_id=1)
    assert (read_header(ready.batches[0]).base_offset, raft.epoch_start_offset) == (2, 2)
    assert flushed(raft, 3) == Ready(high_watermark=3, leader_epoch=3)


def test_a_flush_from_before_a_truncation_commits_nothing() -> None:
    raft = node()
    raft.start(0)
    flushed(raft, 1)
    raft.append([b"x", b"y"], 0)
    early = raft.flush_token()
    raft.resign()
    raft.truncate(1)
    raft.campaign(0)
    raft.append([b"z"], 0)
    # The log ends where that flush began, but with other records.
    assert raft.end_offset == early.end_offset
    assert raft.flushed(early, 0) == Ready()
    assert raft.flushed(raft.flush_token(), 0) == Ready(high_watermark=3, leader_epoch=3)


def test_a_leader_cuts_nothing_and_nobody_cuts_what_is_committed() -> None:
    raft = node()
    raft.start(0)
    raft.append([b"x"], 0)
    flushed(raft, 1)
    with pytest.raises(AssertionError, match="a leader never alters"):
        raft.truncate(1)
    raft.resign()
    with pytest.raises(AssertionError, match="cannot cut"):
        raft.truncate(0)
    raft.truncate(1)
    assert raft.end_offset == 1


def test_voters_whose_record_is_truncated_are_written_again() -> None:
    raft = node(history=history(Voter(1, DIRECTORY), offset=-1))
    raft.start(0)
    raft.resign()
    raft.truncate(0)
    assert ControlRecordType.KRAFT_VOTERS in control_types(raft.campaign(0).batches[0])
