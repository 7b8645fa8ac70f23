"""What was seen of a topic whose old records are deleted: by its reader, and on the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.history import Partition


class Deletion(NamedTuple):
    """A log start that has moved on a node; times in milliseconds.

    Attributes:
        youngest_ms: how old the youngest acknowledged record is that is gone, at least; None if none is known.
        size: what is left in bytes; None if the node has not led all the time since the last look.
    """

    partition: Partition
    node: str
    before: int
    start: int
    youngest_ms: int | None
    size: int | None


@dataclass
class RetentionHistory:
    """What was seen.

    Attributes:
        partitions: those of the topic.
        retention_ms, retention_bytes: its settings; -1 for no limit.
        deletions: on any node.
        started_back: log starts of a leader that went back in one epoch, in words.
        out_of_range: how often a reader was below the log start, and was told so.
        refused: offsets that a reader was refused though its leader had them, in words.
        shown: records below the log start, and gaps, that a reader was shown, in words.
        seen: by offset, what the reader saw.
        reads: how many answers had records.
        left_behind: replicas that keep what their leader has deleted, at the end, in words.
    """

    partitions: list[Partition] = field(default_factory=list)
    retention_ms: int = -1
    retention_bytes: int = -1
    deletions: list[Deletion] = field(default_factory=list)
    started_back: list[str] = field(default_factory=list)
    out_of_range: int = 0
    refused: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    seen: dict[Partition, dict[int, bytes]] = field(default_factory=dict)
    reads: int = 0
    left_behind: list[str] = field(default_factory=list)

    def tally(self) -> dict[str, int]:
        """Return how many deletions were seen, and whether this world should have seen some and has not."""
        if not self.partitions:
            return {}
        return {
            "worlds with retention": 1,
            "worlds with retention and no deletion": not self.deletions,
            "deletions by retention": len(self.deletions),
            "readers sent to the log start": self.out_of_range,
        }
