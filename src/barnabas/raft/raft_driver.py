"""The driver of a `RaftNode`: it carries out each `Ready` over the seams.

The order is the node's promise to its peers: election state durable, then batches appended, then the log flushed, and
only then the high watermark moved. A flush may finish later (the server does it outside the loop's thread);
records appended meanwhile ride on the next flush, so a slow device costs one flush per round and not one per change.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import KafkaError
from barnabas.raft.raft_node import QuorumNotSupported, RaftNode
from barnabas.raft.ready import Ready
from barnabas.raft.seams import ElectionStateStore, QuorumListener, ReplicatedLog


class AppendFailed(Exception):
    """The log rejected a batch and holds nothing of it; a later append may succeed."""


class RaftDriver:
    """One node's quorum at work.

    Args:
        node: the state machine, not started.
    """

    def __init__(
        self,
        node: RaftNode,
        log: ReplicatedLog,
        election_store: ElectionStateStore,
    ) -> None:
        self.node = node
        self.log = log
        self._election_store = election_store
        self._listeners: list[QuorumListener] = []
        self._flushing = False
        self._flush_wanted = False
        self.closed = False

    def add_listener(self, listener: QuorumListener) -> None:
        """Register a listener, before `start`; they are called in the order in which they were added."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Join the quorum.

        Raises:
            QuorumNotSupported: this node is not a voter, or not the only one: nothing carries messages to others yet.
        """
        node = self.node
        if node.voters.ids() != (node.key.id,):
            raise QuorumNotSupported(
                f"node {node.key.id} can only be the sole voter of its quorum; the voters are "
                + ", ".join(map(str, node.voters.ids()))
            )
        self._carry_out(node.start())

    def append(self, values: Sequence[bytes]) -> int:
        """Append records atomically.

        Returns:
            The offset of the last record. It is committed when the listener receives a higher high watermark, which
            may happen before this returns.

        Raises:
            BatchTooLarge, AppendFailed: nothing was appended.
        """
        before = self.node.end_offset
        ready = self.node.append(values)
        last_offset = self.node.end_offset - 1
        try:
            for batch in ready.batches:
                self.log.append(batch, self.node.epoch)
        except (KafkaError, OSError) as error:
            self.node.append_failed(before)
            raise AppendFailed(str(error)) from error
        self._flush()
        return last_offset

    def resign(self) -> None:
        """Give up leadership."""
        self._carry_out(self.node.resign())

    def campaign(self) -> None:
        """Stand for election again after a resignation."""
        self._carry_out(self.node.campaign())

    def close(self) -> None:
        self.closed = True

    def _carry_out(self, ready: Ready) -> None:
        if ready.election is not None:
            self._election_store.write(ready.election)
        for batch in ready.batches:
            self.log.append(batch, self.node.epoch)
        if ready.high_watermark is not None:
            self.log.set_high_watermark(ready.high_watermark)
            for listener in self._listeners:
                listener.on_high_watermark(ready.high_watermark)
        if ready.leader_epoch is not None:
            for listener in self._listeners:
                listener.on_leader(ready.leader_epoch)
        if ready.left_epoch is not None:
            for listener in self._listeners:
                listener.on_resigned(ready.left_epoch)
        if ready.flush:
            self._flush()

    def _flush(self) -> None:
        if self._flushing:
            self._flush_wanted = True
            return
        self._flushing = True
        token = self.node.flush_token()

        def done() -> None:
            self._flushing = False
            if self.closed:
                return
            self._carry_out(self.node.flushed(token))
            if self._flush_wanted:
                self._flush_wanted = False
                self._flush()

        self.log.flush(done)
