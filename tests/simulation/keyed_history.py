"""What was written to a compacted topic, and what its readers and its replicas have of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.history import Partition


@dataclass
class Entry:
    """One record of one key, in the order in which its only writer sent them; times in milliseconds.

    Attributes:
        value: None for a tombstone.
        offset: where it was acknowledged; -1 if it was not.
        is_committed: whether its transaction was to be committed; None while its writer has not asked for an end.
        is_acknowledged: whether the end was.
    """

    number: int
    key: bytes
    value: bytes | None
    sent_ms: int
    offset: int = -1
    is_committed: bool | None = None
    is_acknowledged: bool = False


class Found(NamedTuple):
    """A record that somebody has read; `number` is that of its entry."""

    offset: int
    key: bytes
    value: bytes | None
    number: int


@dataclass
class Reading:
    """What somebody has read from the log start to an end; times in milliseconds.

    Attributes:
        who: reads, in words.
        required: by key, the number of the last entry that was known to be committed before.
        end: up to where all is read.
        ended_ms: when that was.
        is_of_late_replicas: a replica may have missed a tombstone, because it was behind for too long.
    """

    who: str
    required: dict[bytes, int]
    end: int
    ended_ms: int
    found: list[Found]
    is_of_late_replicas: bool = False


@dataclass
class KeyedHistory:
    """What was seen.

    Attributes:
        delete_retention_ms: how long a tombstone stays, at least.
        skew_ms: how far the clocks of brokers were apart at any time.
        cleanings: how often a node has got further with the cleaning of the topic.
        committed: how many transactions were acknowledged as committed.
    """

    partitions: list[Partition] = field(default_factory=list)
    delete_retention_ms: int = 0
    skew_ms: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    cleanings: int = 0
    committed: int = 0

    def required(self) -> dict[bytes, int]:
        """Return, by key, the last entry that is known to be committed now."""
        return {each.key: each.number for each in self.entries.values() if each.is_committed and each.is_acknowledged}

    def last_tombstones(self) -> Iterable[Entry]:
        """Return the tombstones that may be the last of their keys."""
        return [each for each in self.entries.values() if each.value is None and each.is_committed]

    def tally(self) -> dict[str, int]:
        """Return how many cleanings were seen, and whether this world should have seen some and has not."""
        if not self.partitions:
            return {}
        kept = {each.number for reading in self.readings[-1:] for each in reading.found}
        return {
            "worlds with compaction": 1,
            "worlds with compaction and no cleaning": not self.cleanings,
            "cleanings": self.cleanings,
            "records compacted": sum(each.offset >= 0 and each.number not in kept for each in self.entries.values()),
        }
