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

Sketches of parts of a stream are merged into one of the whole (`merge`), for which the same holds, in whatever order.

Sources: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (2005);
Agarwal et al., "Mergeable summaries" (2012).
"""

from __future__ import annotations

from collections.abc import Iterable
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
        self._lost = False
        """Whether a key lost its counter."""

    def __repr__(self) -> str:
        return f"<HeavyKeys {len(self._counts)} of {self._counters} counters, bound={self.bound}>"

    def add(self, key: bytes, records: int = 1) -> None:
        """Count a key that so many records have."""
        counts = self._counts
        if key in counts:
            counts[key] += records
        elif len(counts) < self._counters:
            counts[key] = records
        else:
            count, old = self._find_smallest()
            del counts[old]
            self._errors.pop(old, None)
            counts[key], self._errors[key] = count + records, count
            heapreplace(self._smallest, (count + records, key))
            self._lost = True

    def merge(self, keys: Iterable[HeavyKey], bound: int) -> None:
        """Add the counts of another part of the stream.

        Args:
            keys: `all` of a sketch with the same number of counters.
            bound: of that sketch.

        A key without a counter in one of the sketches came there at most as often as that sketch's bound, which is added to its count
        and to its error. The counters with the largest counts stay.
        """
        ours, merged = self.bound, {key: (records, error) for key, records, error in keys}
        for key, records in self._counts.items():
            others, error = merged.get(key, (bound, bound))
            merged[key] = records + others, self._errors.get(key, 0) + error
        for key in merged.keys() - self._counts.keys():
            records, error = merged[key]
            merged[key] = records + ours, error + ours
        kept = nlargest(self._counters, merged.items(), key=lambda item: (item[1][0], item[0]))
        self._lost = bool(self._lost or bound or len(merged) > len(kept))
        self._counts = {key: records for key, (records, _) in kept}
        self._errors = {key: error for key, (_, error) in kept if error}
        self._smallest = []

    def heaviest(self, number: int) -> list[HeavyKey]:
        """Return the keys with the largest counts, the largest first."""
        found = nlargest(number, self._counts.items(), key=lambda item: (item[1], item[0]))
        return [HeavyKey(key, count, self._errors.get(key, 0)) for key, count in found]

    def all(self) -> list[HeavyKey]:
        """Return all keys that have a counter, the largest count first."""
        return self.heaviest(self._counters)

    @property
    def bound(self) -> int:
        """How much a count is too high at most, and how often a key without a counter came at most."""
        return self._find_smallest()[0] if self._lost else 0

    def _find_smallest(self) -> tuple[int, bytes]:
        if not self._smallest:
            self._smallest = [(count, key) for key, count in self._counts.items()]
            heapify(self._smallest)
        while True:
            count, key = self._smallest[0]
            if self._counts[key] == count:
                return count, key
            heapreplace(self._smallest, (self._counts[key], key))
