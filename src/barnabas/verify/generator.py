"""The next operation of a client: a seeded choice, independent of how the last operation ended.

The workload decides what a checker can find, so it is built to cause trouble:

- many clients write the same few keys, so that transactions overlap in every log;
- transactions are short (1 to 4 steps) and mix sends and polls, so that reads fall between the writes of others;
- one in eight is aborted on purpose, with its records already in the logs;
- consumers often change what they read, and read near the end of the log, where undecided transactions are;
- clients crash in the middle of transactions; their successors take over the same transactional id, or sometimes another, which leaves
  the old transaction to its timeout;
- a *zombie* keeps its producer after a successor has taken the id, and tries to commit.

Three kinds of clients: `plain` (idempotent sends, polls), `txn` (all of the above), `transform` (in a consumer group: reads input
keys, writes one record to an output key for each, and sends its offsets along, as exactly-once pipelines do).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import NamedTuple


class Kind(Enum):
    """The kind of a client."""

    PLAIN = "plain"
    TXN = "txn"
    TRANSFORM = "transform"


class Step(NamedTuple):
    """One step of a planned operation: a send of `value` to `key`, or a poll if `key` is None."""

    key: int | None
    value: int = 0


@dataclass(frozen=True)
class Plan:
    """One operation to do.

    Attributes:
        f: as in a history; `zombie` is a txn in which a successor takes the transactional id before the commit.
        steps: of a send, poll, txn or zombie.
        keys: of an assign or subscribe; of a transform, where its output goes.
        abort: end the transaction with an abort.
        from_beginning: read newly assigned keys from their beginning, else from near their end.
        same_id: after a crash, take over the transactional id.
    """

    f: str
    steps: tuple[Step, ...] = ()
    keys: tuple[int, ...] = ()
    abort: bool = False
    from_beginning: bool = False
    same_id: bool = True


@dataclass(frozen=True)
class Keys:
    """The keys of a run: all clients write and read `shared`, transforms consume `source` and write to `sink`."""

    shared: tuple[int, ...]
    source: tuple[int, ...]
    sink: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return self.shared + self.source + self.sink


class Generator:
    """An endless plan for one client.

    Args:
        kind: of the client.
        keys: of the run.
        rng: makes all choices.
        values: numbers that no other client sends, see `numbers`.
    """

    def __init__(self, kind: Kind, keys: Keys, rng: random.Random, values: Iterator[int]) -> None:
        self.kind = kind
        self.keys = keys
        self.rng = rng
        self.values = values

    def __iter__(self) -> Iterator[Plan]:
        yield self.first()
        while True:
            yield self.next()

    def first(self) -> Plan:
        """Return what a new consumer reads."""
        if self.kind is Kind.TRANSFORM:
            return Plan("subscribe", keys=self.keys.source)
        return self._assign()

    def next(self) -> Plan:
        """Return the next operation."""
        if self.kind is Kind.TRANSFORM:
            return self._transform()
        chance = self.rng.random()
        if chance < 1 / 24:
            return self._subscribe() if self.kind is Kind.TXN and self.rng.random() < 0.25 else self._assign()
        if chance < 1 / 24 + 1 / 120:
            return Plan("crash", same_id=self.rng.random() < 0.8)
        if self.kind is Kind.PLAIN:
            return self._plain()
        if chance < 1 / 24 + 1 / 60:
            return Plan("zombie", steps=self._sends(self.rng.randint(1, 3)))
        return Plan("txn", steps=self._steps(), abort=self.rng.random() < 1 / 8)

    def leftovers(self) -> tuple[Step, ...]:
        """Return the records of a transaction that a crash leaves open."""
        if self.kind is Kind.TRANSFORM:
            return tuple(Step(self.rng.choice(self.keys.sink), next(self.values)) for _ in range(2))
        return self._sends(2)

    def _plain(self) -> Plan:
        if self.rng.random() < 0.5:
            return Plan("poll", steps=(Step(None),))
        return Plan("send", steps=self._sends(self.rng.randint(1, 4)))

    def _transform(self) -> Plan:
        chance = self.rng.random()
        if chance < 1 / 150:
            return Plan("crash", same_id=self.rng.random() < 0.8)
        return Plan("transform", keys=self.keys.sink, abort=chance > 0.9)

    def _assign(self) -> Plan:
        return Plan("assign", keys=self._some(self.keys.all), from_beginning=self.rng.random() < 0.05)

    def _subscribe(self) -> Plan:
        return Plan("subscribe", keys=self.keys.shared)

    def _some(self, keys: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(self.rng.sample(keys, self.rng.randint(1, max(1, len(keys) // 2)))))

    def _target(self) -> int:
        return self.rng.choice(self.keys.shared + self.keys.source)

    def _sends(self, number: int) -> tuple[Step, ...]:
        return tuple(Step(self._target(), next(self.values)) for _ in range(number))

    def _steps(self) -> tuple[Step, ...]:
        steps = [self._sends(1)[0] if self.rng.random() < 0.6 else Step(None) for _ in range(self.rng.randint(1, 4))]
        return tuple(steps)


def numbers(client: int, clients: int) -> Iterator[int]:
    """Return numbers that no other client of the run uses."""
    return count(client + 1, clients)
