"""The most frequent keys of a stream, counted in bounded memory: the Space-Saving sketch.

    keys = HeavyKeys(counters=1000)
    for key in stream:
        keys.add(key)
    keys.heaviest(3)        # [HeavyKey(key=b"alice", records=120, error=2), …]

It has a fixed number of counters. A key that has none takes over the smallest one with its count, which is then the most
that the new count can be too high. After n keys with m counters:

- the true count of a key is between `records - error` and `records`;
- `error` is at most `bound`, and `bound` at most n / m;
- each key that came more often than `bound` has a counter.

While there are no more distinct keys than counters, each count is exact.

Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (2005).
"""

from __future__ import annotations

from heapq import heapify, heapreplace, nlargest
from typing import NamedTuple


class HeavyKey(NamedTuple):
    """A counted key: it came at most `records` times, and at least `records - error` times."""

    key: bytes
    records: int
    error: int

    @property
    def at_least(self) -> int:
        """How often the key came at least."""
        return self.records - self.error


class HeavyKeys:
    """Counts keys with a fixed number of counters.

    Args:
        counters: how many; at least 1.
    """

    def __init__(self, counters: int) -> None:
        assert counters > 0
        self._counters = counters
        self._counts: dict[bytes, int] = {}
        self._errors: dict[bytes, int] = {}
        """Of the keys that took over a counter."""
        self._smallest: list[tuple[int, bytes]] = []
        """A heap, made when the counters are used up. A count in it may be old, and then too small: counts only grow."""

    def __repr__(self) -> str:
        return f"<HeavyKeys {len(self._counts)} of {self._counters} counters, bound={self.bound}>"

    def add(self, key: bytes) -> None:
        """Count a key."""
        counts = self._counts
        if key in counts:
            counts[key] += 1
        elif len(counts) < self._counters:
            counts[key] = 1
        else:
            count, old = self._find_smallest()
            del counts[old]
            self._errors.pop(old, None)
            counts[key], self._errors[key] = count + 1, count
            heapreplace(self._smallest, (count + 1, key))

    def heaviest(self, number: int) -> list[HeavyKey]:
        """Return the keys with the largest counts, the largest first."""
        found = nlargest(number, self._counts.items(), key=lambda item: (item[1], item[0]))
        return [HeavyKey(key, count, self._errors.get(key, 0)) for key, count in found]

    @property
    def bound(self) -> int:
        """How much a count is too high at most, and how often a key without a counter came at most."""
        return self._find_smallest()[0] if len(self._counts) == self._counters and self._errors else 0

    def _find_smallest(self) -> tuple[int, bytes]:
        if not self._smallest:
            self._smallest = [(count, key) for key, count in self._counts.items()]
            heapify(self._smallest)
        while True:
            count, key = self._smallest[0]
            if self._counts[key] == count:
                return count, key
            heapreplace(self._smallest, (self._counts[key], key))
