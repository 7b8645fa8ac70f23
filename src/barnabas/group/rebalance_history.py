"""Why did it rebalance: the last rebalances of each group, for people.

A rebalance is a step of a group's epoch (its generation, in the classic protocol). The code that decides on one calls `because` before
the step is written. The step counts when it is replayed (`begun`), gets its moves with the assignment (`moved`), and ends when
every member has its target (`ended`).

    because(group, epoch, cause, member) ──> begun(group, epoch) ──> moved(group, before, after) ──> ended(group)

This is memory, not state: nothing depends on it, it is not in the log, and a coordinator that moves to another broker starts without it.
A step without a cause was made by an earlier coordinator and is not listed.

Invariants:
- at most `size` rebalances per group are kept, the newest;
- of one group, at most the newest rebalance is unfinished: the next one ends it as superseded.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

Holdings = Mapping[str, frozenset[tuple[str, int]]]
"""Member id to the partitions (topic, index) it holds or should hold."""


@dataclass(slots=True)
class RebalanceRecord:
    """One rebalance.

    Attributes:
        epoch: the group epoch or generation that it led to.
        cause: a sentence for people.
        member_id: the member that caused it; empty if none did.
        client_id: of that member.
        started_ms: epoch milliseconds.
        ended_ms: epoch milliseconds, None while it is open.
        superseded: the next rebalance started before this one ended.
        members: how many members the group has after it; None unless it has ended.
        moved: partitions whose member changed: (topic, partition, from, to); an empty id for no member.
    """

    epoch: int
    cause: str
    member_id: str
    client_id: str
    started_ms: int
    ended_ms: int | None = None
    superseded: bool = False
    members: int | None = None
    moved: tuple[tuple[str, int, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Cause:
    epoch: int
    text: str
    member_id: str
    client_id: str


class RebalanceHistory:
    """The rebalances of the groups of one shard.

    Args:
        size: how many are kept of each group.
        now_ms: wall clock, epoch milliseconds.
    """

    def __init__(self, size: int, now_ms: Callable[[], int]) -> None:
        self._size = size
        self._now_ms = now_ms
        self._by_group: dict[str, deque[RebalanceRecord]] = {}
        self._causes: dict[str, _Cause] = {}

    def __repr__(self) -> str:
        return f"<RebalanceHistory {sum(map(len, self._by_group.values()))} of {len(self._by_group)} groups>"

    def because(self, group_id: str, epoch: int, cause: str, member_id: str = "", client_id: str = "") -> None:
        """The group is about to go to this epoch, for this reason; the last reason before the step counts."""
        self._causes[group_id] = _Cause(epoch, cause, member_id, client_id)

    def begun(self, group_id: str, epoch: int) -> None:
        """The step to this epoch is replayed."""
        cause = self._causes.get(group_id)
        if cause is None or cause.epoch > epoch:
            return  # One operation may take several steps, and has a cause for the last.
        del self._causes[group_id]
        if cause.epoch < epoch:
            return
        records = self._by_group.setdefault(group_id, deque(maxlen=self._size))
        now_ms = self._now_ms()
        if records and records[-1].ended_ms is None:
            records[-1].ended_ms, records[-1].superseded = now_ms, True
        records.append(RebalanceRecord(epoch, cause.text, cause.member_id, cause.client_id, now_ms))

    def moved(self, group_id: str, before: Holdings, after: Holdings) -> None:
        """Record which partitions the assignment of the open rebalance moves, and between which members."""
        record = self._current(group_id)
        if record is None:
            return
        owner_before = {partition: member for member, held in before.items() for partition in held}
        owner_after = {partition: member for member, held in after.items() for partition in held}
        record.moved = tuple(
            (topic, index, owner_before.get((topic, index), ""), owner_after.get((topic, index), ""))
            for topic, index in sorted(owner_before.keys() | owner_after.keys())
            if owner_before.get((topic, index)) != owner_after.get((topic, index))
        )

    def ended(self, group_id: str, members: int) -> None:
        """End the open rebalance: every member has its target."""
        record = self._current(group_id)
        if record is not None:
            record.ended_ms = self._now_ms()
            record.members = members

    def is_open(self, group_id: str) -> bool:
        """Return whether a rebalance of the group is open."""
        return self._current(group_id) is not None

    def forget(self, group_id: str) -> None:
        """Forget a removed group."""
        self._by_group.pop(group_id, None)
        self._causes.pop(group_id, None)

    def keep_only(self, group_ids: Collection[str]) -> None:
        """Forget all groups but these."""
        for group_id in self._by_group.keys() - group_ids:
            self.forget(group_id)

    def of(self, group_id: str) -> list[RebalanceRecord]:
        """The rebalances of a group, oldest first."""
        return list(self._by_group.get(group_id, ()))

    def _current(self, group_id: str) -> RebalanceRecord | None:
        records = self._by_group.get(group_id)
        return records[-1] if records and records[-1].ended_ms is None else None


def with_reason(reason: str | None) -> str:
    """Return why a member says that it left, as the rest of a line of the log."""
    return f": {reason}" if reason else ", and gave no reason"


def members_left(names: Sequence[str]) -> str:
    """Return the cause of a rebalance after members left."""
    return f"member{'' if len(names) == 1 else 's'} {', '.join(names)} left"


def to_json(rebalances: list[RebalanceRecord]) -> str:
    """The rebalances of a group for programs, oldest first; times in epoch milliseconds, null while it is open."""
    return json.dumps(
        {
            "rebalances": [
                {
                    "epoch": each.epoch,
                    "cause": each.cause,
                    "member_id": each.member_id,
                    "client_id": each.client_id,
                    "started_ms": each.started_ms,
                    "ended_ms": each.ended_ms,
                    "superseded": each.superseded,
                    "members": each.members,
                    "moved": [
                        {"topic": topic, "partition": partition, "from": before, "to": after}
                        for topic, partition, before, after in each.moved
                    ],
                }
                for each in rebalances
            ]
        }
    )
