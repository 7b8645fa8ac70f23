"""A snapshot on its way from the leader, piece after piece.

    node wants a snapshot ──► pieces, until all bytes are here ──► durable ──► the log begins at it ──► the node continues
                     ▲              │ an error, a damaged snapshot
                     └── a pause ◄──┘   (the answer to the next Fetch names a snapshot again)

- A snapshot replaces the log only while the node still wants it: under another leader the node may have promised records that the
  snapshot does not hold.
- One snapshot is under way at a time. A newer one, or the end of the role that wanted it, cancels it.
- A disk that fails while pieces are written costs a pause; one that fails while the log is replaced ends this node's part.

Source: Kafka's `KafkaRaftClient.handleFetchSnapshotResponse`; KIP-630.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft.peer_messages import FetchSnapshot, SnapshotPiece
from barnabas.raft.ready import Ready
from barnabas.raft.seams import IncomingSnapshot, ReplicatedLog, SnapshotId
from barnabas.steps import Loop, in_background, sleep

if TYPE_CHECKING:
    from barnabas.raft.peers import Peers
    from barnabas.raft.raft_node import RaftNode


class SnapshotFetch:
    """Takes the snapshots that a node wants.

    Args:
        carry_out: carries out the node's effects.
        on_fault: receives the error when the log could not be replaced.
        log_line: logs a line of a level about a subject; a leader can cause as many as it likes.
    """

    def __init__(
        self,
        node: RaftNode,
        log: ReplicatedLog,
        peers: Peers,
        loop: Loop,
        carry_out: Callable[[Ready], None],
        on_fault: Callable[[BaseException], None],
        log_line: Callable[[int, str, str], None],
    ) -> None:
        self._node = node
        self._log_line = log_line
        self._log = log
        self._peers = peers
        self._loop = loop
        self._carry_out = carry_out
        self._on_fault = on_fault
        self._under_way: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<SnapshotFetch wanted={self._node.wanted_snapshot}>"

    def begin(self, snapshot: SnapshotId) -> None:
        """Take a snapshot from the leader of this moment."""
        self.cancel()
        line = f"Node {self._node.key.id} takes the snapshot at {snapshot.end_offset} from its leader"
        self._log_line(logging.INFO, "snapshots of the quorum", line)
        self._under_way = in_background(self._take(snapshot, self._node.epoch, self._node.leader_id), self._loop)

    def cancel(self) -> None:
        """Give up the snapshot under way."""
        if self._under_way is not None:
            self._under_way.cancel()
            self._under_way = None

    def _is_wanted(self, snapshot: SnapshotId, epoch: int) -> bool:
        return self._node.wanted_snapshot == snapshot and self._node.epoch == epoch

    async def _take(self, snapshot: SnapshotId, epoch: int, leader_id: int) -> None:
        try:
            incoming = self._log.receive_snapshot(snapshot)
            try:
                await self._fill(incoming, snapshot, epoch, leader_id)
                if self._is_wanted(snapshot, epoch):
                    await incoming.complete()
                if self._is_wanted(snapshot, epoch):
                    self._replace_log(incoming, snapshot)
            finally:
                incoming.discard()
        except (KafkaError, OSError) as error:
            await self._try_again(snapshot, epoch, error)

    async def _fill(self, incoming: IncomingSnapshot, snapshot: SnapshotId, epoch: int, leader_id: int) -> None:
        """Append all pieces, or as many as come while the snapshot is wanted."""
        while self._is_wanted(snapshot, epoch):
            request = FetchSnapshot(epoch, self._node.key, snapshot, incoming.size)
            piece = await self._peers.fetch_snapshot(leader_id, request)
            _check(piece, request)
            if not self._is_wanted(snapshot, epoch):
                return
            incoming.append(piece.data)
            self._carry_out(self._node.snapshot_goes_on())
            if incoming.size >= piece.size:
                return

    def _replace_log(self, incoming: IncomingSnapshot, snapshot: SnapshotId) -> None:
        try:
            voters = self._log.begin_at(incoming)
        except (KafkaError, OSError) as error:
            self._on_fault(error)
            return
        self._under_way = None
        self._carry_out(self._node.snapshot_loaded(snapshot, voters))

    async def _try_again(self, snapshot: SnapshotId, epoch: int, error: Exception) -> None:
        line = f"Node {self._node.key.id} cannot take the snapshot at {snapshot.end_offset}: {error}"
        self._log_line(logging.WARNING, "failures to take a snapshot", line)
        await sleep(self._node.quorum.timeouts.retry_backoff / 1000, self._loop)
        if self._is_wanted(snapshot, epoch):
            self._under_way = None
            self._carry_out(self._node.snapshot_failed())


def _check(piece: SnapshotPiece, request: FetchSnapshot) -> None:
    """Raise the error of a piece; a piece of another snapshot or position is an error too."""
    if piece.error is not ErrorCode.NONE:
        raise KafkaError(piece.error)
    if (piece.snapshot, piece.position) != (request.snapshot, request.position) or not piece.data:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "the leader sent another piece of a snapshot than the one asked for"
        )
