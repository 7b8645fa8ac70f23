"""Which dead letters were sent back: a record for each partition in the compacted topic `__barnabas_redrive`.

    key    TOPIC-ID:PARTITION
    value  {"topic": "orders.dlq", "partition": 0, "redriven": [[0, 16], [20, 20]]}

The record is written in the transaction that sends the dead letters back. It names ranges of offsets, both ends included, not one
position, because a filter chooses some records and leaves those between them. A group's offsets would do less: they expire after a week
without a member. The topic's id is the key, because a topic that is deleted and created again begins at offset 0.
"""

from __future__ import annotations

import json
from bisect import bisect_right

from barnabas.retries.record import Output, Record

STATE_TOPIC = "__barnabas_redrive"


class Ranges:
    """A set of offsets as ranges."""

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        self._firsts = [first for first, _ in ranges or ()]
        self._lasts = [last for _, last in ranges or ()]

    def __repr__(self) -> str:
        return f"<Ranges {','.join(f'{first}-{last}' for first, last in self.ranges)}>"

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and offset <= self._lasts[place]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last offset of each range."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def add(self, first: int, last: int) -> None:
        """Add the offsets from `first` to `last`, both included."""
        begin = bisect_right(self._lasts, first - 2)
        end = bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        self._firsts[begin:end], self._lasts[begin:end] = [first], [last]


class Redriven:
    """The dead letters of a topic that were sent back.

    Args:
        topic, topic_id: of the dead-letter topic.
    """

    def __init__(self, topic: str, topic_id: str) -> None:
        self._topic = topic
        self._topic_id = topic_id
        self._ranges: dict[int, Ranges] = {}
        self._changed: set[int] = set()

    def __repr__(self) -> str:
        return f"<Redriven topic={self._topic} partitions={len(self._ranges)}>"

    def replay(self, record: Record) -> None:
        """Take a record of the state topic."""
        topic_id, _, partition = (record.key or b"").decode(errors="replace").rpartition(":")
        if topic_id == self._topic_id and record.value is not None:
            ranges = [(int(first), int(last)) for first, last in json.loads(record.value)["redriven"]]
            self._ranges[int(partition)] = Ranges(ranges)

    def has(self, partition: int, offset: int) -> bool:
        """Return whether a dead letter was sent back."""
        return partition in self._ranges and offset in self._ranges[partition]

    def add(self, partition: int, first: int, last: int) -> None:
        """Note that the dead letters from `first` to `last` are sent back."""
        self._ranges.setdefault(partition, Ranges()).add(first, last)
        self._changed.add(partition)

    def changes(self) -> list[Output]:
        """Return the records of the state topic that say what was added since the last call."""
        changed, self._changed = sorted(self._changed), set()
        return [
            Output(STATE_TOPIC, self._value(partition).encode(), f"{self._topic_id}:{partition}".encode(), partition=0)
            for partition in changed
        ]

    def _value(self, partition: int) -> str:
        return json.dumps({"topic": self._topic, "partition": partition, "redriven": self._ranges[partition].ranges})
