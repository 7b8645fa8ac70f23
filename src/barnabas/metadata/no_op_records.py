"""NoOpRecords, which the active controller writes when it has written nothing else for metadata.max.idle.interval.ms.

The record changes nothing. Its commit shows that the quorum works. Without it, DescribeQuorum of an idle cluster would show no lag of a
voter that has stopped fetching.

- It waits for the commit of all appended records, and until the log has stood still for the interval. (Kafka writes one in every interval.)
- A sole voter without observers writes none: no node would read it, and a single idle node should use neither processor nor disk.

Source: KIP-835; Kafka's `QuorumController.maybeScheduleNextWriteNoOpRecord`.
"""

from __future__ import annotations

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.controller_view import ControllerView
from barnabas.protocol.messages import NoOpRecord
from barnabas.raft.leader import Leader
from barnabas.raft.raft_node import RaftNode

__all__ = ["NoOpRecords"]


class NoOpRecords:
    """Soft state of the active controller: since when its log has stood still."""

    def __init__(self) -> None:
        self._end_offset = -1
        self._since_ms = 0

    def __repr__(self) -> str:
        return f"<NoOpRecords end_offset={self._end_offset} since={self._since_ms}>"

    def due(self, view: ControllerView) -> Batches | None:
        """Return the record that is due now, None if none is; call it often."""
        node, interval_ms = view.quorum, view.settings.max_idle_interval_ms
        if node.end_offset != self._end_offset:
            self._end_offset, self._since_ms = node.end_offset, view.now_ms
            return None
        if not interval_ms or view.now_ms - self._since_ms < interval_ms:
            return None
        if node.high_watermark < node.end_offset or not _is_followed(node):
            return None
        return in_batches(iter([NoOpRecord()]))


def _is_followed(node: RaftNode) -> bool:
    """Return whether other voters or observers read the log of this leader."""
    state = node.quorum.state
    return isinstance(state, Leader) and (not state.is_alone or bool(state.observers))
