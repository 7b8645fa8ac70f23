"""Indexes over a history, for the checks.

The order of a key's values is their order of offsets, taken from

- every poll, also of an operation that failed: a consumer may act on whatever it reads;
- sends that certainly took effect: with outcome ok, or with outcome info if some value of them was read.

Holes between offsets mean nothing: markers and aborted records have offsets too. If two values claim one offset, or one value claims
two, the first claim decides the order and a check reports the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from barnabas.verify.history import History, Op, Outcome

Value = tuple[int, int]
"""(key, value): values are unique within a key."""


class Analysis:
    """Indexes over one history.

    Attributes:
        completions: operations that ended, in order.
        writer_of: the completion that sent a value. A send that never completed counts as info.
        readers_of: the completions that read a value, in order.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.completions = [op for op in history if op.outcome is not Outcome.INVOKE]
        self.writer_of: dict[Value, Op] = {}
        self.readers_of: defaultdict[Value, list[Op]] = defaultdict(list)
        self._index()

    def _index(self) -> None:
        open_ops: dict[int, Op] = {}
        for op in self.history:
            if op.outcome is Outcome.INVOKE:
                open_ops[op.process] = op
                continue
            if op.f != "stuck":  # the operation that does not return stays open
                open_ops.pop(op.process, None)
            for send in op.sends:
                self.writer_of[send.key, send.value] = op
            for key, pairs in op.reads().items():
                for _, value in pairs:
                    readers = self.readers_of[key, value]
                    if not readers or readers[-1] is not op:
                        readers.append(op)
        for op in open_ops.values():
            for send in op.sends:
                self.writer_of.setdefault((send.key, send.value), op)

    def must_have_committed(self, op: Op) -> bool:
        """Return whether an operation certainly took effect: its outcome is ok, or info and some value it sent was read."""
        if op.outcome is Outcome.OK:
            return True
        return op.outcome is not Outcome.FAIL and any((each.key, each.value) in self.readers_of for each in op.sends)

    @cached_property
    def claims(self) -> dict[int, dict[int, set[int]]]:
        """The values that operations claim at each offset of each key."""
        claims: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for op in self.completions:
            for key, pairs in op.reads().items():
                for offset, value in pairs:
                    claims[key][offset].add(value)
            if op.sends and self.must_have_committed(op):
                for send in op.sends:
                    if send.offset is not None:
                        claims[send.key][send.offset].add(send.value)
        return {key: dict(found) for key, found in claims.items()}

    @cached_property
    def order(self) -> dict[int, list[int]]:
        """The values of each key in the order of the log."""
        orders: dict[int, list[int]] = {}
        for key, found in self.claims.items():
            ordered: dict[int, None] = {}
            for offset in sorted(found):
                for value in sorted(found[offset]):
                    ordered.setdefault(value)
            orders[key] = list(ordered)
        return orders

    @cached_property
    def position(self) -> dict[int, dict[int, int]]:
        """The place of each value in its key's order."""
        return {key: {value: index for index, value in enumerate(values)} for key, values in self.order.items()}

    @cached_property
    def final_reads(self) -> dict[int, set[int]]:
        """The values read from each key at the end of the run, without the keys that were not read to their end."""
        found: dict[int, set[int]] = {}
        for op in self.completions:
            if op.final and op.outcome is Outcome.OK:
                for key in op.keys:
                    found.setdefault(key, set())
                for key, pairs in op.reads().items():
                    found.setdefault(key, set()).update(value for _, value in pairs)
        return found

    def distance(self, key: int, first: int, second: int) -> int | None:
        """Return how many places `second` is after `first` in the log; None if one of them has no known place."""
        positions = self.position.get(key, {})
        if first in positions and second in positions:
            return positions[second] - positions[first]
        return None

    def by_process(self) -> Iterator[list[Op]]:
        """Yield the completions of each process in order, without faults and final reads."""
        found: defaultdict[int, list[Op]] = defaultdict(list)
        for op in self.completions:
            if op.process >= 0 and not op.final:
                found[op.process].append(op)
        yield from found.values()
