"""The arithmetic of majorities.

- A majority of n voters is more than half of them; any two majorities share a voter.
- The commit index is the largest offset that a majority has flushed. A leader may use it only once it lies past the
  start of its own epoch (Raft paper, section 5.4.2), since an older entry held by a majority can still be overwritten.

Sources: Raft paper, sections 5.3 and 5.4; Kafka's `LeaderState.maybeUpdateHighWatermark`, `EpochElection`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping


def majority(voters: int) -> int:
    """Return how many of `voters` are more than half of them."""
    assert voters > 0, "a quorum has at least one voter"
    return voters // 2 + 1


def commit_index(end_offsets: Iterable[int]) -> int:
    """Return the largest end offset that a majority has reached.

    Args:
        end_offsets: for every voter the end of its flushed log, -1 if unknown.
    """
    ordered = sorted(end_offsets, reverse=True)
    return ordered[majority(len(ordered)) - 1]


def high_watermark(end_offsets: Iterable[int], epoch_start_offset: int, current: int) -> int:
    """Return the high watermark for these end offsets: never lower than `current`, and past the epoch's start."""
    candidate = commit_index(end_offsets)
    return candidate if candidate > epoch_start_offset and candidate > current else current


class ElectionOutcome(enum.Enum):
    PENDING = "pending"
    WON = "won"
    LOST = "lost"


def election_outcome(votes: Mapping[int, bool | None]) -> ElectionOutcome:
    """Return the outcome that the votes so far decide.

    Args:
        votes: for every voter True (granted), False (rejected) or None (no answer yet).
    """
    needed = majority(len(votes))
    granted = sum(vote is True for vote in votes.values())
    rejected = sum(vote is False for vote in votes.values())
    if granted >= needed:
        return ElectionOutcome.WON
    return ElectionOutcome.LOST if rejected > len(votes) - needed else ElectionOutcome.PENDING


def is_up_to_date(last_epoch: int, end_offset: int, own_last_epoch: int, own_end_offset: int) -> bool:
    """Return whether a candidate's log is at least as new as ours: the later last epoch wins, then the longer log."""
    return (last_epoch, end_offset) >= (own_last_epoch, own_end_offset)
