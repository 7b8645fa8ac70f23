"""The records of a share partition that are fetched and not finished: batches of runs.

    start offset                                         end offset
    |  batch 0..9                    |  batch 10..14     |
    |  ACQUIRED 0..4 | ACKNOWLEDGED 5..9 |  AVAILABLE 10..14 |   runs

    AVAILABLE ──acquire──► ACQUIRED ──accept──► ACKNOWLEDGED
        ▲                     │ └────reject───► ARCHIVED, or ARCHIVING first if the record goes to a dead letter topic
        └──release, lock timeout (ARCHIVED or ARCHIVING once the delivery count is at its limit)

A **batch** is what one fetch acquired; it leaves the window only as a whole. A **run** is a stretch of a batch with one state, delivery
count and owner; it is split when an acknowledgement or an acquisition concerns only a part of it. Kafka keeps one state for a batch, and
one for each of its offsets once they differ; a run is both.

A change that counts only once it is written is a `Transition`: the run has its new state before, so that no member acquires it, and
returns to the old state if the write fails. A run in transition can be neither acquired nor acknowledged.

Invariants: the runs of a batch cover it without gaps, in order; a run in ACQUIRED has an owner and the time at which its lock ends.

Sources: KIP-932; Kafka's `InFlightBatch`, `InFlightState`, `RecordState`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.state_batches import RecordState

__all__ = ["NO_MEMBER", "InFlightBatch", "RecordState", "Run", "Transition"]

NO_MEMBER = ""


class Run:
    """A stretch of a batch.

    Attributes:
        lock_until: loop time in seconds at which the acquisition ends; None if no member holds the records.
        transition: the change that is being written.
    """

    __slots__ = ("delivery_count", "first", "is_final", "last", "lock_until", "member_id", "state", "transition")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        lock_until: float | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_until = lock_until
        self.transition: Transition | None = None
        self.is_final = False

    def __repr__(self) -> str:
        owner = f" of {self.member_id}" if self.member_id else ""
        moving = "…" if self.transition is not None else ""
        return f"<Run {self.first}..{self.last} {self.state.name}{moving} x{self.delivery_count}{owner}>"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether the run may be acquired now."""
        return self.state is RecordState.AVAILABLE and self.transition is None

    def acquire(self, member_id: str, lock_until: float) -> None:
        """Give the run to a member, which is one more delivery."""
        assert self.is_available, self
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_until = lock_until

    def leave(self, state: RecordState, max_delivery_count: int, dead_letters: bool) -> RecordState:
        """End the acquisition; returns the new state. A run at its delivery limit does not become available again."""
        assert self.state is RecordState.ACQUIRED, self
        if state is RecordState.AVAILABLE and self.delivery_count >= max_delivery_count:
            state = RecordState.ARCHIVING if dead_letters else RecordState.ARCHIVED
        self.state = state
        self.member_id = NO_MEMBER
        return state

    def archive(self) -> None:
        """Finish the run for good; a transition under way no longer changes its state."""
        self.is_final = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.lock_until = None


class Transition:
    """A change of state that waits for its write.

    Args:
        run: already in its new state.
        member_id, max_delivery_count: as before the change, for rolling back.
    """

    __slots__ = ("_max_delivery_count", "_member_id", "runs")

    def __init__(self, run: Run, member_id: str, max_delivery_count: int) -> None:
        self.runs = [run]
        self._member_id = member_id
        self._max_delivery_count = max_delivery_count
        run.transition = self

    def __repr__(self) -> str:
        return f"<Transition {self.runs}>"

    def commit(self) -> None:
        """End the transition: the write has succeeded."""
        for run in self.runs:
            run.transition = None
            run.lock_until = None

    def roll_back(self, now: float) -> None:
        """Give the records back to their owner, because the write failed; make them available if the lock has ended."""
        for run in self.runs:
            run.transition = None
            if run.is_final:
                run.lock_until = None
            elif run.lock_until is not None and run.lock_until <= now:
                exhausted = run.delivery_count >= self._max_delivery_count
                run.state = RecordState.ARCHIVED if exhausted else RecordState.AVAILABLE
                run.member_id = NO_MEMBER
                run.lock_until = None
            else:
                run.state = RecordState.ACQUIRED
                run.member_id = self._member_id


class InFlightBatch:
    """The records that one fetch acquired, or one entry of the persisted state."""

    __slots__ = ("first", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]

    def __repr__(self) -> str:
        return f"<InFlightBatch {self.runs}>"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def cut(self, first: int, last: int) -> Iterator[Run]:
        """Yield the runs within a range, in order, split at its ends; lazily, so that a caller that stops early splits fewer."""
        index = 0
        while index < len(self.runs):
            run = self.runs[index]
            if run.first > last:
                return
            if run.last < first:
                index += 1
                continue
            if run.first < first:
                self.split(index, first)
                index += 1
                run = self.runs[index]
            if run.last > last:
                self.split(index, last + 1)
            yield run
            index += 1

    def split(self, index: int, at: int) -> None:
        """Split the run at `index` so that its second part begins at offset `at`."""
        run = self.runs[index]
        assert run.first < at <= run.last, (run, at)
        rest = Run(at, run.last, run.state, run.delivery_count, run.member_id, run.lock_until)
        rest.is_final = run.is_final
        if run.transition is not None:
            rest.transition = run.transition
            run.transition.runs.append(rest)
        run.last = at - 1
        self.runs.insert(index + 1, rest)
