"""The result of each input of a `RaftNode`: everything that must happen now."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import Answer, Outgoing
from barnabas.raft.seams import Batch, SnapshotId

__all__ = ["FlushToken", "Ready"]


class Ready(NamedTuple):
    """The effects that must happen now, in the order of the fields.

    Attributes:
        truncate_to: the log is cut to this offset.
        election: is made durable before anything else leaves the node.
        batches: are appended; they carry their offsets and leader epochs.
        flush: the log is made durable up to its end; then `RaftNode.flushed` is called with the token taken when the flush began.
        high_watermark: everything before it is committed.
        leader_epoch: this node leads that epoch, and has committed the epoch's first record.
        left_epoch: this node does not lead that epoch any more.
        snapshot: is read from the leader, whose log does not go back far enough. If it is still `RaftNode.wanted_snapshot` when it is
            complete, it replaces the log, and `RaftNode.snapshot_loaded` is called.
        messages: are sent to peers.
        answer: is returned to the peer whose request this was.
    """

    truncate_to: int | None = None
    election: ElectionState | None = None
    batches: tuple[Batch, ...] = ()
    flush: bool = False
    high_watermark: int | None = None
    leader_epoch: int | None = None
    left_epoch: int | None = None
    snapshot: SnapshotId | None = None
    messages: tuple[Outgoing, ...] = ()
    answer: Answer | None = None


class FlushToken(NamedTuple):
    """The log that a flush makes durable: up to `end_offset`, as it is after this number of truncations."""

    end_offset: int
    truncations: int
