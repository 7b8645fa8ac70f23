"""The simple assignor: even, shared when members outnumber partitions, and sticky."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from barnabas.group.modern_group import Assignment
from barnabas.group.share.assignor import assign

T, U = b"t" * 16, b"u" * 16


def spread(members: int, partitions: int, before: dict[str, Assignment] | None = None) -> dict[str, Assignment]:
    subscriptions = {f"m{index}": frozenset({T}) for index in range(members)}
    return assign(subscriptions, {T: range(partitions)}, before or {}, homogeneous=True)


def counts(assignment: dict[str, Assignment]) -> Counter[tuple[bytes, int]]:
    return Counter(
        (topic_id, index)
        for assigned in assignment.values()
        for topic_id, partitions in assigned.items()
        for index in partitions
    )


@pytest.mark.parametrize("members", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 7])
def test_even_and_nobody_idle(members: int, partitions: int) -> None:
    assignment = spread(members, partitions)
    sizes = [sum(map(len, assigned.values())) for assigned in assignment.values()]
    shared = counts(assignment)
    assert len(shared) == partitions, "every partition has a member"
    assert min(sizes) >= 1 or members > partitions * -(-members // partitions)
    assert max(sizes) - min(sizes) <= 1
    assert max(shared.values()) <= -(-members // partitions)


def test_a_member_keeps_what_it_has_when_another_comes() -> None:
    first = spread(1, 4)
    second = spread(2, 4, first)
    assert second["m0"][T] < first["m0"][T]
    assert second["m0"][T] | second["m1"][T] == {0, 1, 2, 3}
    assert spread(2, 4, second) == second


def test_only_partitions_whose_state_is_begun_are_assigned() -> None:
    assert assign({"m": frozenset({T, U})}, {T: [1]}, {}, homogeneous=True) == {"m": {T: frozenset({1})}}
    assert assign({"m": frozenset({T})}, {}, {}, homogeneous=True) == {"m": {}}
    assert assign({}, {}, {}, homogeneous=True) == {}


def test_each_topic_is_spread_over_its_own_subscribers() -> None:
    assignment = assign(
        {"both": frozenset({T, U}), "one": frozenset({T})}, {T: range(4), U: range(2)}, {}, homogeneous=False
    )
    assert assignment["both"][U] == {0, 1}
    assert U not in assignment["one"]
    assert len(assignment["both"][T]) == len(assignment["one"][T]) == 2


@pytest.mark.parametrize("seed", range(30))
def test_a_group_that_changes_stays_even(seed: int) -> None:
    rng = random.Random(seed)
    assignment: dict[str, Assignment] = {}
    for _ in range(10):
        members = rng.randint(1, 6)
        partitions = rng.randint(1, 8)
        assignment = spread(members, partitions, assignment)
        shared = counts(assignment)
        assert set(shared) == {(T, index) for index in range(partitions)}
        sizes = [sum(map(len, assigned.values())) for assigned in assignment.values()]
        assert max(sizes) <= -(-(-(-members // partitions) * partitions) // members)
