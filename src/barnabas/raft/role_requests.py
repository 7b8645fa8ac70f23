"""The request that a node sends to another one in its present role."""

from __future__ import annotations

from barnabas.raft.candidate import Candidate
from barnabas.raft.follower import Follower
from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import BeginEpoch, EndEpoch, FetchFrom, LogEnd, Request, Vote
from barnabas.raft.prospective import Prospective
from barnabas.raft.quorum_state import QuorumState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.resigned import Resigned
from barnabas.raft.unattached import Unattached
from barnabas.raft.voters import VoterSet


def request_to(to: int, quorum: QuorumState, voters: VoterSet, end: LogEnd, high_watermark: int) -> Request:
    """Return the request of a node to another.

    Args:
        end: of the node's log.
        high_watermark: the node's own.
    """
    epoch, key = quorum.epoch, quorum.key
    match quorum.state:
        case Prospective() | Candidate() as state:
            return Vote(epoch, key, _voter(voters, to), end, pre_vote=isinstance(state, Prospective))
        case Leader():
            return BeginEpoch(epoch, key.id, _voter(voters, to))
        case Resigned() as state:
            return EndEpoch(epoch, key.id, state.preferred)
        case Follower() | Unattached():
            return FetchFrom(epoch, key, end.end_offset, end.epoch, high_watermark)


def _voter(voters: VoterSet, node_id: int) -> ReplicaKey:
    return next(each.key for each in voters.voters if each.id == node_id)
