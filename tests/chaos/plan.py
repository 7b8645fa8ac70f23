"""Which part of the pipeline dies when: drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

_FIRST, _LAST = 0.05, 0.95
"""Faults strike between these shares of the lines, so that lines come before the first and after the last."""
_LONG_S = 30.0
_EARLY = 0.25
_INTO_BATCH_S = 1.5


class Kind(Enum):
    """What dies, each time by SIGKILL."""

    BROKER = "broker"
    DRIVER = "driver"
    EXECUTOR = "executor"


class Fault(NamedTuple):
    """One death.

    Attributes:
        line: how many order lines are fed when it is due.
        away_s: how long until what died is started again; Spark starts executors itself.
        early: a driver or executor dies at once, also while Spark starts; otherwise after a batch since the last start,
            and in a batch of one of the queries. A broker dies once more while it starts.
        choice: which of several, such as the executors or the queries: any whole number.
        into_batch_s: how long after the batch has begun.
    """

    line: int
    kind: Kind
    away_s: float
    early: bool
    choice: int
    into_batch_s: float = 0.0


def plan(seed: int, lines: int, counts: Mapping[Kind, int]) -> list[Fault]:
    """Return the faults of a run over so many lines, in order."""
    chance = random.Random(seed)
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    chance.shuffle(kinds)
    places = sorted(chance.uniform(_FIRST, _LAST) for _ in kinds)
    return [
        Fault(
            int(place * lines),
            kind,
            _away_s(kind, chance),
            chance.random() < _EARLY,
            chance.randrange(1000),
            chance.uniform(0, _INTO_BATCH_S),
        )
        for place, kind in zip(places, kinds, strict=True)
    ]


def random_counts(seed: int, faults: int) -> dict[Kind, int]:
    """Return how often each part dies: at least once."""
    chance = random.Random(seed)
    counts = dict.fromkeys(Kind, 1)
    for kind in chance.choices((Kind.BROKER, Kind.DRIVER, Kind.EXECUTOR), (3, 2, 2), k=max(0, faults - len(Kind))):
        counts[kind] += 1
    return counts


def _away_s(kind: Kind, chance: random.Random) -> float:
    """A broker is away for some seconds and now and then for half a minute, which queries must outlive."""
    if kind is Kind.BROKER:
        return _LONG_S if chance.random() < 0.2 else chance.uniform(0, 12)
    return chance.uniform(0, 5)
