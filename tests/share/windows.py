"""A share partition's window with one member's requests."""

from __future__ import annotations

from barnabas.share.acknowledgement import Acknowledgement, Change, acknowledge, settle
from barnabas.share.acquisition import Reading, acquire
from barnabas.share.in_flight import RecordState
from barnabas.share.window import Limits, ShareWindow

A, ACK, X = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def limits(*, deliveries: int = 5, locks: int = 2000, until: float = 30.0, **other: bool) -> Limits:
    return Limits(deliveries, locks, until, **other)


class Window:
    """A window over record batches of ten, by default."""

    def __init__(self, start: int = 0, *, deliveries: int = 5, locks: int = 2000) -> None:
        self.records = ShareWindow(start)
        self.limits = limits(deliveries=deliveries, locks=locks)

    def acquire(
        self,
        member: str = "m",
        *,
        to: int = 29,
        most: int = 500,
        strict: bool = False,
        size: int = 10,
        batch_size: int = 10,
        start: int | None = None,
    ) -> list[tuple[int, int, int]]:
        """Read from where the window says, in record batches of `size`, and acquire."""
        offset = self.records.next_fetch_offset() if start is None else start
        first = offset // size * size
        batches = [(base, min(base + size - 1, to)) for base in range(first, to + 1, size)]
        read = Reading(member, batches, offset, batch_size, strict, self.limits)
        acquired = acquire(self.records, read, most)
        return [(part.first, part.last, part.delivery_count) for part in acquired]

    def acknowledge(self, first: int, last: int, *types: int, member: str = "m") -> list[Change]:
        changes = acknowledge(self.records, member, [Acknowledgement(first, last, types)], self.limits)
        settle(self.records, changes, committed=True, now=0.0)
        return changes

    def states(self) -> list[tuple[int, int, RecordState, int]]:
        return [
            (run.first, run.last, run.state, run.delivery_count) for batch in self.records.batches for run in batch.runs
        ]


def restored(start: int, *states: tuple[int, int, int, int]) -> Window:
    window = Window()
    window.records = ShareWindow.restored(start, states)
    return window
