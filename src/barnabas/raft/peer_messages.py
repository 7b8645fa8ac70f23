"""The messages between voters, without their bytes: the requests and answers of KRaft for the one partition `__cluster_metadata-0`.

`request_messages` and `answer_messages` turn each into Kafka's message and back: `Vote` is Vote (52), `BeginEpoch` BeginQuorumEpoch
(53), `EndEpoch` EndQuorumEpoch (54), `FetchFrom` Fetch (1). `snapshot_messages` does so for `FetchSnapshot` (59). Cluster ids and
versions are the host's.

Sources: KIP-595, KIP-630 (snapshots), KIP-853 (directory ids), KIP-996 (pre-vote).
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import NO_NODE
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voters import VoterEndpoint

__all__ = [
    "MAX_PIECE_BYTES",
    "MAX_WAIT_MS",
    "Answer",
    "BeginEpoch",
    "EndEpoch",
    "EpochAnswer",
    "FetchFrom",
    "FetchSnapshot",
    "Fetched",
    "LogEnd",
    "Outgoing",
    "Request",
    "SnapshotPiece",
    "Vote",
    "VoteAnswer",
    "bootstrap_ids",
]


MAX_WAIT_MS = 500
"""How long Kafka's `KafkaRaftClient` lets its Fetch wait."""

MAX_PIECE_BYTES = 1 << 20
"""How much of a snapshot one request asks for; the default of Kafka's controller.quorum.fetch.snapshot.max.bytes."""

_FIRST_BOOTSTRAP_ID = -2


def bootstrap_ids(count: int) -> tuple[int, ...]:
    """Return the ids of so many servers of which only the addresses are known; no node has such an id."""
    return tuple(_FIRST_BOOTSTRAP_ID - place for place in range(count))


class LogEnd(NamedTuple):
    """The end of a log and the leader epoch of its last record; as a tuple it orders logs by Raft's rule."""

    epoch: int
    end_offset: int


class Vote(NamedTuple):
    """A request for a vote. With `pre_vote` it only asks whether the vote would be given, and the epoch is not a new one."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey
    log_end: LogEnd
    pre_vote: bool = False


class BeginEpoch(NamedTuple):
    """The leader of an epoch announces itself to a voter that may not know it yet.

    Attributes:
        endpoints: where the leader serves the quorum; empty in a request of this node, which `request_message` completes.
    """

    epoch: int
    leader_id: int
    voter: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()


class EndEpoch(NamedTuple):
    """A leader gives up its epoch; the first of the preferred successors should stand for election first."""

    epoch: int
    leader_id: int
    preferred: tuple[ReplicaKey, ...] = ()


class FetchFrom(NamedTuple):
    """A replica asks for the log from an offset on; the epoch of the record before it shows whether the logs agree.

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


class FetchSnapshot(NamedTuple):
    """A replica asks for a piece of the leader's snapshot, from a position in its file on."""

    epoch: int
    replica: ReplicaKey
    snapshot: SnapshotId
    position: int
    max_bytes: int = MAX_PIECE_BYTES


class SnapshotPiece(NamedTuple):
    """The answer to FetchSnapshot.

    Attributes:
        size: of the whole snapshot, in bytes.
        data: the snapshot's bytes from `position` on; a piece may end anywhere, even within a batch.
    """

    epoch: int
    leader_id: int
    snapshot: SnapshotId
    size: int = 0
    position: int = 0
    data: bytes | bytearray | memoryview = b""
    error: ErrorCode = ErrorCode.NONE


class Outgoing(NamedTuple):
    """A request to send; the host passes its answer, or its failure, to the node."""

    to: int
    request: Request
