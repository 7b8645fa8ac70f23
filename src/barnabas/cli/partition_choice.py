"""The partitions of `produce`'s records, chosen by the command itself as librdkafka's partitioners choose them.

So the command knows where each record goes. Else the library would have to tell it of each acknowledged record, which takes longer than
everything else that is done for a short line.

- A key goes where its hash says (`client.partitioner`); the hash of a key that comes again is not computed again.
- Records that may go anywhere go to one partition that has a leader, for 10 ms, and then to another: so their batches are large.
- The partitions are looked at again every minute, because a topic may grow.

Source: librdkafka's `partitioner` and `sticky.partitioning.linger.ms`, whose default is 10.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

from barnabas.client.partitioner import PARTITIONERS, partition_for

__all__ = ["PartitionChoice", "may_choose"]

_OF_THE_LIBRARY = ("partitioner", "sticky.partitioning.linger.ms", "delivery.report.only.error")
"""Settings that only the library follows."""
_STICKY_S = 0.01
_LOOK_S = 60.0
_MOST_KEYS = 100_000
"""Keys whose partitions are remembered."""


class PartitionChoice(dict[bytes | None, int]):
    """The partition of each key; None is the key of records without one.

    Args:
        partitioner: one of `client.partitioner.PARTITIONERS`.
        leaders: the leader of each partition, negative without one; at least one.
        look: returns the leaders now; empty if no broker answers.
    """

    def __init__(
        self,
        partitioner: str,
        leaders: Sequence[int],
        look: Callable[[], Sequence[int]] = tuple,
        *,
        choose: Callable[[Sequence[int]], int] = random.choice,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert partitioner in PARTITIONERS, partitioner
        super().__init__()
        self._partitioner = partitioner
        self._leaders = leaders
        self._look = look
        self._choose = choose
        self._clock = clock
        self._look_at = clock() + _LOOK_S
        self._any = 0
        self._any_until = clock()

    def __repr__(self) -> str:
        return f"<PartitionChoice {self._partitioner} partitions={len(self._leaders)} any={self._any}>"

    def __missing__(self, key: bytes | None) -> int:
        found = partition_for(key, len(self._leaders), self._partitioner)
        self[key] = self._any if found is None else found
        return self[key]

    def begin(self) -> None:
        """Begin some records; those before them are with the library."""
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            leaders = self._look()
            if leaders and list(leaders) != list(self._leaders):
                self._leaders = leaders
                self._any_until = now
                self.clear()
        if len(self) > _MOST_KEYS:
            self.clear()
        if now >= self._any_until:
            self._any_until = now + _STICKY_S
            led = [number for number, leader in enumerate(self._leaders) if leader >= 0]
            self._any = self._choose(led or range(len(self._leaders)))
            for key in (None, b""):  # the keys that may go anywhere
                self.pop(key, None)


def may_choose(partitioner: str, given: Mapping[str, str]) -> bool:
    """Return whether the command can choose as the library would.

    Args:
        given: the library's settings in the file and on the command line.
    """
    return partitioner in PARTITIONERS and not any(name in given for name in _OF_THE_LIBRARY)
