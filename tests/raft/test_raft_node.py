"""One voter's quorum: election, the epoch's first records, the high watermark."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.clock import Clock
from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader, QuorumDescription, ReplicaProgress
from barnabas.raft.peer_messages import LogEnd, Vote, VoteAnswer
from barnabas.raft.raft_node import MAX_BATCH_BYTES, BatchTooLarge, QuorumNotSupported, RaftNode
from barnabas.raft.ready import Ready
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header
from tests.raft.memory_log import MemoryLog

DIRECTORY = b"d" * 16


def history(*voters: Voter, offset: int = 0) -> VoterSetHistory:
    return VoterSetHistory(VotersFrom(offset, VoterSet.of(voters)))


CLOCK = Clock(lambda: 77, lambda: 5)


def log(end_offset: int, last_epoch: int) -> MemoryLog:
    """A log of so many records, all of one epoch."""
    made = MemoryLog()
    if end_offset:
        made.append(build_batch([(0, None, b"", ())] * end_offset, leader_epoch=last_epoch))
        made.durable = 1
    return made


class Member:
    """A node with its log: what the node asks for is done at once, except flushes."""

    def __init__(
        self,
        voters: VoterSetHistory | None = None,
        election: ElectionState | None = None,
        end_offset: int = 0,
        last_epoch: int = 0,
        clock: Clock = CLOCK,
    ) -> None:
        self.log = log(end_offset, last_epoch)
        self.node = RaftNode(
            ReplicaKey(1, DIRECTORY),
            voters or history(Voter(1, DIRECTORY)),
            election or ElectionState(),
            self.log,
            clock,
            random.Random(1),
        )

    def do(self, ready: Ready) -> Ready:
        """Append what the node asks for."""
        for batch in ready.batches:
            self.log.append(batch)
        return ready

    def start(self) -> Ready:
        return self.do(self.node.start())

    def append(self, *values: bytes) -> Ready:
        return self.do(self.node.append(values))

    def flushed(self, end_offset: int | None = None) -> Ready:
        """End a flush that began when the log ended there."""
        token = self.node.flush_token()
        return self.node.flushed(token if end_offset is None else token._replace(end_offset=end_offset))


def control_values(batch: bytearray) -> list[Any]:
    return [parse_control_record(record).value for record in iter_records(batch)]


def control_types(batch: bytearray) -> list[ControlRecordType]:
    return [parse_control_record(record).type for record in iter_records(batch)]


def test_a_sole_voter_leads_a_new_epoch_at_once() -> None:
    member = Member()
    ready = member.start()
    assert member.node.role is Role.LEADER
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
    assert repr(member.node) == "<RaftNode id=1 Leader epoch=1 high_watermark=-1 end=1>"
    assert member.node.wake_at_ms is None


def test_the_epoch_is_one_more_than_any_before() -> None:
    member = Member(election=ElectionState(epoch=6, leader_id=1), end_offset=40, last_epoch=6)
    (batch,) = member.start().batches
    assert member.node.quorum.election == ElectionState(epoch=7, leader_id=1)
    assert (read_header(batch).base_offset, read_header(batch).partition_leader_epoch) == (40, 7)
    assert (member.node.end_offset, member.log.end_offset) == (41, 41)


def test_a_leader_of_the_last_run_neither_leads_nor_votes_in_its_epoch() -> None:
    voters = (Voter(1, DIRECTORY), Voter(2, b"o" * 16))
    member = Member(history(*voters), ElectionState(epoch=6, leader_id=1), end_offset=40, last_epoch=5)
    member.start()
    assert member.node.role is Role.RESIGNED
    asked = Vote(6, ReplicaKey(2, b"o" * 16), ReplicaKey(1, DIRECTORY), LogEnd(5, 40))
    assert member.node.vote(asked).answer == VoteAnswer(6, 1, is_granted=False)


def test_the_log_knows_an_epoch_that_the_file_has_lost() -> None:
    assert Member(end_offset=40, last_epoch=6).start().election == ElectionState(7, 1)


def test_the_first_epoch_writes_the_voters_that_only_the_directory_knew() -> None:
    member = Member(history(Voter(1, DIRECTORY), offset=-1))
    (batch,) = member.start().batches
    assert control_types(batch) == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    _, version, voters = control_values(batch)
    assert (version.version, version.k_raft_version) == (0, 1)
    assert VoterSet.from_record(voters) == member.node.voters
    assert not member.node.history.is_to_write
    assert member.node.history.last == VotersFrom(2, member.node.voters)


def test_the_voters_of_a_log_have_kraft_version_1() -> None:
    assert Member().node.kraft_version == 1


def test_nothing_is_committed_before_the_flush() -> None:
    member = Member()
    member.start()
    assert member.node.high_watermark == -1
    member.append(b"x", b"y")
    assert member.node.high_watermark == -1
    assert member.flushed(1) == Ready(high_watermark=1, leader_epoch=1)
    assert member.flushed(3) == Ready(high_watermark=3)
    assert member.flushed(3) == Ready()


def test_leadership_is_told_once_when_the_epochs_first_record_is_committed() -> None:
    member = Member(election=ElectionState(3), end_offset=10, last_epoch=3)
    member.start()
    member.append(b"x")
    assert [member.flushed(offset).leader_epoch for offset in (11, 12)] == [4, None]


def test_leadership_is_told_in_a_log_that_was_committed_to_its_end() -> None:
    member = Member(election=ElectionState(3), end_offset=10, last_epoch=3)
    member.node.high_watermark = 10
    member.start()
    assert member.flushed() == Ready(high_watermark=11, leader_epoch=4)


def test_appended_records_are_one_batch_at_the_end_of_the_log() -> None:
    member = Member(end_offset=9)
    member.start()
    ready = member.append(b"a", b"b", b"c")
    assert ready.flush
    (batch,) = ready.batches
    header = read_header(batch)
    assert (header.base_offset, header.record_count, header.base_timestamp) == (10, 3, 77)
    assert header.partition_leader_epoch == 1
    assert [record.value for record in iter_records(batch)] == [b"a", b"b", b"c"]


def test_a_batch_too_large_to_be_atomic_is_refused_and_changes_nothing() -> None:
    member = Member()
    member.start()
    before = member.node.end_offset
    with pytest.raises(BatchTooLarge):
        member.append(*[b"x" * (MAX_BATCH_BYTES // 2)] * 2)
    assert member.node.end_offset == before


def test_eight_megabytes_are_the_most_that_is_atomic() -> None:
    member = Member()
    member.start()
    most = 8 * 1024 * 1024  # Kafka's internal.metadata.max.batch.size.in.bytes
    (batch,) = member.append(b"x" * (most - 100)).batches
    fits = most - 100 + most - len(batch)
    assert len(member.append(b"x" * fits).batches[0]) == most
    with pytest.raises(BatchTooLarge):
        member.append(b"x" * (fits + 1))


def test_what_the_log_refused_is_appended_nowhere() -> None:
    member = Member()
    member.start()
    member.node.append([b"refused", b"too"])
    member.node.append_failed(1)
    (batch,) = member.append(b"x").batches
    assert read_header(batch).base_offset == 1


def test_another_directory_is_another_voter() -> None:
    with pytest.raises(QuorumNotSupported, match="another metadata directory"):
        Member(history(Voter(1, b"o" * 16))).start()
    beside_another = Member(history(Voter(1, b"o" * 16), Voter(2, b"t" * 16)))
    beside_another.start()
    assert not beside_another.node.quorum.is_voter


def described(member: Member) -> QuorumDescription:
    state = member.node.quorum.state
    assert isinstance(state, Leader)
    return state.describe(member.node.clock)


def test_describe() -> None:
    member = Member(clock=Clock(lambda: 9, lambda: 5))
    member.start()
    member.flushed()
    description = described(member)
    assert (description.leader_id, description.leader_epoch, description.high_watermark) == (1, 1, 1)
    assert [(v.id, v.end_offset, v.last_caught_up_ms) for v in description.voters] == [(1, 1, 9)]
    assert [v.directory_id for v in description.voters] == [DIRECTORY]
    assert description.observers == ()


def test_a_description_has_the_progress_of_others_in_wall_time() -> None:
    member = Member(clock=Clock(lambda: 1_000_000, lambda: 100))
    member.start()
    observer = ReplicaKey(2, b"o" * 16)
    leader = member.node.quorum.state
    assert isinstance(leader, Leader)
    leader.observers[observer] = ReplicaProgress(*observer, 1, last_fetch_ms=40, last_caught_up_ms=-1)
    (other,) = described(member).observers
    assert (other.end_offset, other.last_fetch_ms, other.last_caught_up_ms) == (1, 1_000_000 - 60, -1)


def test_a_leader_that_resigns_stands_again_in_an_epoch_that_it_has_not_led() -> None:
    member = Member()
    member.start()
    member.append(b"x")
    assert member.node.resign() == Ready(left_epoch=1)
    assert member.node.role is Role.RESIGNED
    assert member.flushed() == Ready()  # A node that does not lead commits nothing by its own flush.
    ready = member.do(member.node.campaign())
    assert ready.election == ElectionState(epoch=3, leader_id=1)
    assert read_header(ready.batches[0]).base_offset == 2
    assert member.flushed() == Ready(high_watermark=3, leader_epoch=3)
