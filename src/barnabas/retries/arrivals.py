"""Records that were consumed and not yet tried, in the order of each partition.

A partition whose first record is not due yet waits as a whole, because the records behind it are due later; the others continue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from confluent_kafka import Message

from barnabas.retries.committed_records import Where, record_of
from barnabas.retries.routing import Arrival, Router


class Arrivals:
    """The records of each partition that wait for their turn."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._waiting: dict[Where, deque[tuple[int, Arrival]]] = {}

    def __repr__(self) -> str:
        return f"<Arrivals partitions={len(self._waiting)} records={sum(map(len, self._waiting.values()))}>"

    def add(self, message: Message) -> None:
        """Append a record to its partition."""
        where = (str(message.topic()), int(message.partition() or 0))
        offset = int(message.offset() or 0)
        self._waiting.setdefault(where, deque()).append((offset, self._router.arrival(record_of(message))))

    def take(self, now_ms: int) -> Iterator[tuple[Where, int, Arrival]]:
        """Yield the records that are due, partition by partition, each with its place; what is yielded waits no longer."""
        for where in list(self._waiting):
            # A caller that takes only some begins with another partition the next time.
            waiting = self._waiting[where] = self._waiting.pop(where)
            while waiting and waiting[0][1].due_ms <= now_ms:
                offset, arrival = waiting.popleft()
                if not waiting:
                    del self._waiting[where]
                yield where, offset, arrival

    def not_due(self, now_ms: int) -> dict[Where, int]:
        """Return the partitions whose first record is not due yet, and when it is."""
        firsts = {where: waiting[0][1].due_ms for where, waiting in self._waiting.items()}
        return {where: due_ms for where, due_ms in firsts.items() if due_ms > now_ms}

    def has_due(self, now_ms: int) -> bool:
        """Return whether a record is due."""
        return any(waiting[0][1].due_ms <= now_ms for waiting in self._waiting.values())

    def clear(self) -> None:
        """Forget everything: the consumer's partitions are given away."""
        self._waiting.clear()
