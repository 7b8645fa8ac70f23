"""A seed's plan."""

from __future__ import annotations

import pytest

from tests.chaos.plan import Kind, plan, random_counts

COUNTS = {Kind.BROKER: 2, Kind.DRIVER: 5, Kind.EXECUTOR: 0}


@pytest.mark.parametrize("seed", range(20))
def test_each_part_dies_as_often_as_asked_while_lines_come_in(seed):
    faults = plan(seed, 1000, COUNTS)
    assert [sum(fault.kind is kind for fault in faults) for kind in Kind] == [2, 5, 0]
    assert [fault.line for fault in faults] == sorted(fault.line for fault in faults)
    assert all(50 <= fault.line <= 950 and 0 <= fault.away_s <= 30 for fault in faults)


def test_a_seed_repeats_its_plan():
    assert plan(1, 1000, COUNTS) == plan(1, 1000, COUNTS) != plan(2, 1000, COUNTS)


@pytest.mark.parametrize("seed", range(20))
def test_at_random_each_part_dies_at_least_once(seed):
    counts = random_counts(seed, 20)
    assert set(counts) == set(Kind)
    assert min(counts.values()) >= 1
    assert sum(counts.values()) == 20
