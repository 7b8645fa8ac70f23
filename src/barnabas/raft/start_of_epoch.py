"""The first batch of a leader's epoch: its LeaderChange record, and the voters if the log does not name them yet.

Source: Kafka's `LeaderState.appendStartOfEpochControlRecords`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import messages
from barnabas.raft.voter_set_history import VoterSetHistory
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.control import ControlRecordType

if TYPE_CHECKING:
    from barnabas.records.control import QuorumMessage

ControlRecord = tuple[ControlRecordType, "QuorumMessage"]


def leader_change(leader_id: int, voters: VoterSet, granting: Sequence[int]) -> ControlRecord:
    """Return the record that begins an epoch."""
    Voter = messages.LeaderChangeMessage.Voter
    # Version 0, without directories: Kafka writes no other, and its tools read no other.
    change = messages.LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[Voter(voter_id=voter) for voter in voters.ids()],
        granting_voters=[Voter(voter_id=voter) for voter in granting],
    )
    return (ControlRecordType.LEADER_CHANGE, change)


def voters_to_write(history: VoterSetHistory, own: Voter | None) -> VoterSet | None:
    """Return the voters that the first batch of an epoch has to name; None if the log names them.

    Args:
        own: the leader as the voter set should have it: it may have another address than in its last run.
    """
    voters = history.last.voters
    entry = None if own is None else voters.voter(own.id)
    # A leader that has removed itself stays out, and a static voter has no directory.
    if own is not None and entry is not None and entry.key == own.key and entry != own:
        return voters.with_voter(own)
    return voters if history.is_to_write else None


def voters_record(voters: VoterSet) -> ControlRecord:
    """Return the record from which on these are the voters."""
    return (ControlRecordType.KRAFT_VOTERS, voters.to_record())


def first_voters(voters: VoterSet) -> list[ControlRecord]:
    """Return the records that begin kraft.version 1: those of a formatted directory, or of a static quorum that is upgraded."""
    version = messages.KRaftVersionRecord(version=0, k_raft_version=1)
    return [(ControlRecordType.KRAFT_VERSION, version), voters_record(voters)]
