"""What voters say to each other, without its bytes: the requests and answers of KRaft for the one partition `__cluster_metadata-0`.

`request_messages` and `answer_messages` turn each into Kafka's message and back: `Vote` is Vote (52), `BeginEpoch` BeginQuorumEpoch
(53), `EndEpoch` EndQuorumEpoch (54), `FetchFrom` Fetch (1). Cluster ids, endpoints and versions are the host's.

Sources: KIP-595, KIP-853 (directory ids), KIP-996 (pre-vote).
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import NO_NODE
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.seams import SnapshotId

__all__ = [
    "MAX_WAIT_MS",
    "Answer",
    "BeginEpoch",
    "EndEpoch",
    "EpochAnswer",
    "FetchFrom",
    "Fetched",
    "LogEnd",
    "Outgoing",
    "Request",
    "Vote",
    "VoteAnswer",
]


MAX_WAIT_MS = 500
"""How long Kafka's `KafkaRaftClient` lets its Fetch wait."""


class LogEnd(NamedTuple):
    """The end of a log and the leader epoch of its last record; as a tuple it orders logs by Raft's rule."""

    epoch: int
    end_offset: int


class Vote(NamedTuple):
    """A request for a vote; with `pre_vote` only whether it would be given, and the epoch is not a new one."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey
    log_end: LogEnd
    pre_vote: bool = False


class BeginEpoch(NamedTuple):
    """The leader of an epoch tells a voter of itself, which may not know it yet."""

    epoch: int
    leader_id: int
    voter: ReplicaKey


class EndEpoch(NamedTuple):
    """A leader gives up its epoch; the first of the preferred successors should stand for election first."""

    epoch: int
    leader_id: int
    preferred: tuple[ReplicaKey, ...] = ()


class FetchFrom(NamedTuple):
    """A replica asks for the log from an offset on; the epoch of the record before it tells whether the logs agree.

    Attributes:
        max_wait_ms: the leader answers after this time, even if neither its log nor its high watermark has grown.
    """

    epoch: int
    replica: ReplicaKey
    offset: int
    last_fetched_epoch: int
    high_watermark: int = -1
    max_wait_ms: int = MAX_WAIT_MS


Request = Vote | BeginEpoch | EndEpoch | FetchFrom


class VoteAnswer(NamedTuple):
    epoch: int
    leader_id: int = NO_NODE
    is_granted: bool = False
    error: ErrorCode = ErrorCode.NONE


class EpochAnswer(NamedTuple):
    """The answer to BeginEpoch and EndEpoch."""

    epoch: int
    leader_id: int = NO_NODE
    error: ErrorCode = ErrorCode.NONE


class Fetched(NamedTuple):
    """The answer to FetchFrom: records, or where the asker's log differs, or the snapshot that it must take first.

    Attributes:
        high_watermark: the leader's; -1 while it does not know its own.
        diverging: the last epoch that both logs have, and its end at the leader: the asker truncates to the smaller end.
        batches: whole batches from `offset` of the request on.
    """

    epoch: int
    leader_id: int = NO_NODE
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging: LogEnd | None = None
    snapshot: SnapshotId | None = None
    batches: tuple[bytes | bytearray | memoryview, ...] = ()
    error: ErrorCode = ErrorCode.NONE


Answer = VoteAnswer | EpochAnswer | Fetched


class Outgoing(NamedTuple):
    """A request to send; the host passes its answer, or its failure, to the node."""

    to: int
    request: Request
