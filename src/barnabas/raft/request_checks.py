"""Why a node rejects a request of the quorum: the checks that need no more than its role and its key.

Source: Kafka's `KafkaRaftClient` (`validateVoterOnlyRequest`, `validateLeaderOnlyRequest`, `handleFetchRequest`).
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import NO_NODE
from barnabas.raft.epochs import REQUEST_AHEAD_MAX, is_credible
from barnabas.raft.peer_messages import BeginEpoch, EndEpoch, FetchFrom, Vote
from barnabas.raft.quorum_state import QuorumState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role


def error_of_epoch(quorum: QuorumState, epoch: int, node_id: int) -> ErrorCode:
    """Return the error of a request that names an epoch and the node that stands for election or leads in it."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    is_valid = node_id >= 0 and is_credible(epoch, quorum.epoch, REQUEST_AHEAD_MAX)
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def error_of_end(request: Vote) -> ErrorCode:
    """Return the error of a candidate's log; NONE if there can be such a log."""
    # A candidate has raised its epoch, so its log holds none of it; a prospective node may be in its leader's epoch.
    epoch, end_offset = request.log_end
    is_possible = 0 <= epoch < request.epoch + request.pre_vote and end_offset >= 0
    return ErrorCode.NONE if is_possible else ErrorCode.INVALID_REQUEST


def error_of_voter(key: ReplicaKey, voter: ReplicaKey) -> ErrorCode:
    """Return the error of a request that is for another voter than this node."""
    # As in Kafka, this check comes after that of the epoch: a node with a new disk learns the epoch too. The first versions name no voter.
    return ErrorCode.NONE if voter.id == NO_NODE or voter.names(key) else ErrorCode.INVALID_VOTER_KEY


def error_of_leader(quorum: QuorumState, request: BeginEpoch | EndEpoch) -> ErrorCode:
    """Return the error of a request that a node sends as the leader of an epoch."""
    # An epoch cannot have two leaders, so the sender is wrong; this node keeps the leader that it knows.
    is_other = request.epoch == quorum.epoch and quorum.leader_id not in (NO_NODE, request.leader_id)
    error = error_of_epoch(quorum, request.epoch, request.leader_id)
    return error or (ErrorCode.INVALID_REQUEST if is_other else ErrorCode.NONE)


def error_of_fetch(quorum: QuorumState, request: FetchFrom) -> ErrorCode:
    """Return the error of a replica's Fetch."""
    if not 0 <= request.last_fetched_epoch <= request.epoch or min(request.offset, request.max_wait_ms) < 0:
        return ErrorCode.INVALID_REQUEST
    # A copied directory must not speak for the leader's own log.
    is_copy = request.replica.id == quorum.key.id
    return error_of_leadership(quorum, request.epoch) or (ErrorCode.INVALID_REQUEST if is_copy else ErrorCode.NONE)


def error_of_leadership(quorum: QuorumState, epoch: int) -> ErrorCode:
    """Return the error of a request that only the leader of this epoch answers."""
    if epoch != quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < quorum.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if quorum.role is Role.LEADER else ErrorCode.NOT_LEADER_OR_FOLLOWER
