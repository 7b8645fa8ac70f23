"""What was seen of a topic that may elect a leader which lacks records, and of the others, which may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.history import Partition


@dataclass
class UncleanHistory:
    """What was seen.

    Attributes:
        partitions: those that may lose records.
        elections: the leader epochs in which one of them had a leader that may lack records.
        elsewhere: those in which another partition had one, in words.
        sent: what was sent, and whether it was acknowledged.
        log: what there is at the end.
        bounds: the log start and end then; None if the run broke off before.
        reads: how many answers had records.
        sent_back: how often a reader was behind the end, because what it had read is lost.
    """

    partitions: list[Partition] = field(default_factory=list)
    elections: dict[int, None] = field(default_factory=dict)
    elsewhere: dict[str, None] = field(default_factory=dict)
    sent: dict[bytes, bool] = field(default_factory=dict)
    log: list[tuple[int, bytes]] = field(default_factory=list)
    bounds: tuple[int, int] | None = None
    reads: int = 0
    sent_back: int = 0

    @property
    def lost(self) -> list[bytes]:
        """What was acknowledged and is not there at the end."""
        there = {value for _, value in self.log}
        return [value for value, is_acknowledged in self.sent.items() if is_acknowledged and value not in there]

    def tally(self) -> dict[str, int]:
        """Return how many unclean elections were seen, and whether this world should have seen some and has not."""
        if not self.partitions:
            return {}
        return {
            "worlds with unclean elections": 1,
            "worlds with unclean elections that saw none": not self.elections,
            "unclean elections": len(self.elections),
            "records lost by them": len(self.lost) if self.bounds is not None else 0,
        }
