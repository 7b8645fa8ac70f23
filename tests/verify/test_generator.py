"""What the generator promises: unique values, its mix, and the same plans from the same seed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

from barnabas.verify.generator import Generator, Kind, numbers
from tests.verify.model import KEYS


def plans(kind: Kind, seed: int = 0, client: int = 0, count: int = 3000) -> list:
    return list(islice(Generator(kind, KEYS, random.Random(seed), numbers(client, 3)), count))


def test_a_seed_repeats_the_plan() -> None:
    assert plans(Kind.TXN, 5) == plans(Kind.TXN, 5) != plans(Kind.TXN, 6)


def test_no_value_is_used_twice() -> None:
    values = [
        step.value for client in range(3) for plan in plans(Kind.TXN, 1, client) for step in plan.steps if step.key is not None
    ]  # fmt: skip
    assert len(values) == len(set(values)) > 1000


def test_the_mix() -> None:
    kinds = Counter(plan.f for plan in plans(Kind.TXN))
    assert kinds.keys() == {"assign", "subscribe", "crash", "zombie", "txn"}
    assert min(kinds.values()) > 5
    transactions = [plan for plan in plans(Kind.TXN) if plan.f == "txn"]
    aborted = sum(plan.abort for plan in transactions) / len(transactions)
    assert 0.08 < aborted < 0.18
    mixed = [plan for plan in transactions if len({step.key is None for step in plan.steps}) == 2]
    assert len(mixed) > len(transactions) / 3


def test_sinks_are_written_by_transforms_only() -> None:
    for kind in (Kind.PLAIN, Kind.TXN):
        assert not {step.key for plan in plans(kind) for step in plan.steps} & set(KEYS.sink)
    assert {plan.f for plan in plans(Kind.TRANSFORM)} == {"subscribe", "transform", "crash"}


def test_consumers_change_their_keys() -> None:
    assigned = {plan.keys for plan in plans(Kind.TXN) if plan.f == "assign"}
    assert len(assigned) > 20
    assert set().union(*assigned) == set(KEYS.all)
