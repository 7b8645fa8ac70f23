"""When Python looks for cycles in everything that the broker has made: between long requests.

- Objects made during the start live until the end; `gc.freeze` takes them out of every later collection.
- The threshold of the youngest generation rises from 700 to 20,000 objects: a request makes hundreds of objects that die with its
  response, none of them in a cycle, so that a collection in the middle of a burst only costs time. Cycles are still found, later.
- That of the middle generation falls from 10 to 3, so that no collection but a full one looks at more than 80,000 objects.
- A full collection looks at everything: 47 ms in one turn if a request of 1 MB has half a million objects just then. Such a request
  causes middle collections all the time. So a full collection is due as often as Python would begin one, and waits for a second
  without a middle collection. Without such a second Python begins it after `AT_LATEST`.
"""

from __future__ import annotations

import asyncio
import gc

__all__ = ["FullCollections"]

YOUNG_OBJECTS = 20_000
YOUNG_COLLECTIONS = 3
MIDDLE_COLLECTIONS = 300
"""A full collection is due after these."""

AT_LATEST = 50 * MIDDLE_COLLECTIONS

LOOK_SECONDS = 1.0


class FullCollections:
    """Begins the full collections of this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._middle_collections = 0

    def begin(self) -> None:
        """Freeze what the start has made, set the thresholds, and look every second whether a full collection may begin."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, AT_LATEST)
        self._look()

    def _look(self) -> None:
        middle_collections = gc.get_stats()[1]["collections"]
        if middle_collections == self._middle_collections and gc.get_count()[2] >= MIDDLE_COLLECTIONS:
            gc.collect()
        self._middle_collections = middle_collections
        self._loop.call_later(LOOK_SECONDS, self._look)
