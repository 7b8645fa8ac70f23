"""The first batch of a leader's epoch: its LeaderChange record, and the voters if the log does not name them yet.

Source: Kafka's `LeaderState.appendStartOfEpochControlRecords`.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol import messages
from barnabas.raft.voters import VoterSet
from barnabas.records.control import ControlRecordType, QuorumMessage

ControlRecord = tuple[ControlRecordType, QuorumMessage]


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


def first_voters(voters: VoterSet) -> list[ControlRecord]:
    """Return the records that write the voters of a formatted directory into the log."""
    version = messages.KRaftVersionRecord(version=0, k_raft_version=1)
    return [(ControlRecordType.KRAFT_VERSION, version), (ControlRecordType.KRAFT_VOTERS, voters.to_record())]
