"""What the members of a share group were told: which records they held and until when, and which of them were finished."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.history import Partition

Leader = tuple[tuple[str, int], int]
"""The address of a partition's leader, and its epoch."""


@dataclass
class Hold:
    """A record that was delivered to a member; times are the world's.

    Attributes:
        count: which delivery of the record it is, as the leader counts.
        leader: who delivered it; None if it may have been replaced before.
        asked_at: when the member sent the request.
        since: when the member had the answer.
        until: when its lock is over for certain, or the member gives the record up.
        is_held_at: the latest time at which it is known that the leader still has the session of the member, which holds the record.
    """

    member: str
    partition: Partition
    offset: int
    count: int
    leader: Leader | None
    asked_at: float
    since: float
    until: float
    is_held_at: float


class Record(NamedTuple):
    """Where a record stands."""

    partition: Partition
    offset: int


@dataclass
class ShareHistory:
    """What all members were told.

    Attributes:
        delivery_limit: how often a record is delivered at most.
        holds: every delivery, in the order of the answers.
        finished: since when a member knows that a record is accepted or rejected.
        asked_to_finish: the records that a member has tried to accept or reject.
        lost_answers: how many fetches of a partition had no answer, and may have acquired records.
        refused: acknowledgements of records that were held, and were refused.
        left: what the group does not finish at the end.
        drained: the partitions that were read to their ends, when all was over.
    """

    delivery_limit: int = 5
    holds: list[Hold] = field(default_factory=list)
    finished: dict[Record, float] = field(default_factory=dict)
    asked_to_finish: dict[Record, None] = field(default_factory=dict)
    lost_answers: Counter[Partition] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    drained: dict[Partition, None] = field(default_factory=dict)
