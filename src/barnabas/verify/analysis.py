"""What a history says about the logs, put where the checkers find it.

The order of a key's values is their order of offsets, taken from

- every poll, whatever became of the operation around it: what a consumer is given is safe to act on, always;
- sends whose effect is certain: ok ones, and info ones of which some value was read.

Holes between offsets say nothing, since markers and aborted records take offsets too. Where two values claim one offset, or one
value two, the first claim counts for the order and a checker reports the other.
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
        writer_of: which completion sent a value. A send that never completed is taken for info.
        readers_of: which completions read a value, in order.
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
        """Whether an operation certainly took effect: it was ok, or nobody knew but something it sent was read."""
        if op.outcome is Outcome.OK:
            return True
        return op.outcome is not Outcome.FAIL and any((each.key, each.value) in self.readers_of for each in op.sends)

    @cached_property
    def claims(self) -> dict[int, dict[int, set[int]]]:
        """Which values were said to be at each offset of each key."""
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
        """Where in its key's order each value is."""
        return {key: {value: index for index, value in enumerate(values)} for key, values in self.order.items()}

    @cached_property
    def final_reads(self) -> dict[int, set[int]]:
        """The values read from each key at the end of the run; a key is missing when it was not read to its end."""
        found: dict[int, set[int]] = {}
        for op in self.completions:
            if op.final and op.outcome is Outcome.OK:
                for key in op.keys:
                    found.setdefault(key, set())
                for key, pairs in op.reads().items():
                    found.setdefault(key, set()).update(value for _, value in pairs)
        return found

    def distance(self, key: int, first: int, second: int) -> int | None:
        """How many places after `first` `second` is in the log; None when it is not known of both."""
        positions = self.position.get(key, {})
        if first in positions and second in positions:
            return positions[second] - positions[first]
        return None

    def by_process(self) -> Iterator[list[Op]]:
        """The completions of each process, in order; faults and final reads are not clients' work."""
        found: defaultdict[int, list[Op]] = defaultdict(list)
        for op in self.completions:
            if op.process >= 0 and not op.final:
                found[op.process].append(op)
        yield from found.values()
