"""A query's checkpoint as Spark keeps it: for each batch the rows that were planned, and whether its commit returned.

Both logs take a batch once: a second driver that adds the same batch again fails, as Spark's do. `lose` takes away the newest entries,
as when a backup is restored, or the power fails before the page cache is written; `restore` brings them back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Checkpoint:
    planned: dict[int, range] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    _lost: tuple[dict[int, range], set[int]] | None = None

    def next_batch(self) -> tuple[int, range | None]:
        """Return the batch that a driver begins with, and its rows if it is planned."""
        newest = max(self.planned, default=-1)
        if newest in self.done or newest < 0:
            return newest + 1, None
        return newest, self.planned[newest]

    @property
    def end(self) -> int:
        """The number of rows that are planned."""
        return max((rows.stop for rows in self.planned.values()), default=0)

    def plan(self, batch: int, rows: range) -> bool:
        """Write down a batch's rows; return False if another driver has."""
        if batch in self.planned:
            return False
        self.planned[batch] = rows
        return True

    def finish(self, batch: int) -> bool:
        """Write down that a batch is done; return False if another driver has."""
        if batch in self.done or batch not in self.planned:
            return False
        self.done.add(batch)
        if self._lost is not None and self._lost[1] <= self.done:
            self._lost = None
        return True

    # Faults

    @property
    def is_old(self) -> bool:
        """Whether it lacks batches that it once had."""
        return self._lost is not None

    def lose(self, batches: int, *, plans: bool) -> bool:
        """Lose that the newest batches are done, and their plans too if asked; return whether there were any."""
        newest = sorted(self.done)[-batches:]
        if not newest or self.is_old:
            return False
        self._lost = (dict(self.planned), set(self.done))
        first = newest[0]
        self.done = {each for each in self.done if each < first}
        kept = first if plans else first + 1
        self.planned = {each: rows for each, rows in self.planned.items() if each < kept}
        return True

    def restore(self) -> bool:
        """Bring back what was lost; return whether there was anything."""
        if self._lost is None:
            return False
        (planned, done), self._lost = self._lost, None
        since = {each: self.planned[each] for each in self.done - done}
        self.planned, self.done = {**planned, **since}, self.done | done
        return True

    def draw(self, largest: int, available: int, rng: random.Random) -> range:
        """Return rows for the next batch, as many as the source has by now, and not more than the largest batch."""
        begin = self.end
        return range(begin, min(available, begin + rng.randint(1, largest)))
