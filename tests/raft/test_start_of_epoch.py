"""The records that begin an epoch."""

from __future__ import annotations

from barnabas.raft.start_of_epoch import first_voters, leader_change
from barnabas.raft.voters import VoterSet
from barnabas.records.control import ControlRecordType
from tests.raft.member_of_three import VOTERS, Member


def test_the_leader_names_the_voters_and_those_that_elected_it() -> None:
    kind, change = leader_change(1, VOTERS, [1, 3])
    assert kind is ControlRecordType.LEADER_CHANGE
    assert (change.version, change.leader_id) == (0, 1)
    assert [voter.voter_id for voter in change.voters] == [1, 2, 3]
    assert [voter.voter_id for voter in change.granting_voters] == [1, 3]


def test_the_first_voters_go_into_the_log() -> None:
    (version, _), (voters, record) = first_voters(VOTERS)
    assert (version, voters) == (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS)
    assert VoterSet.from_record(record) == VOTERS


def test_an_epoch_begins_with_one_batch() -> None:
    member = Member(4)
    member.lead()
    assert [(batch.base_offset, batch.epoch) for batch in member.log.batches[1:]] == [(1, 5)]
