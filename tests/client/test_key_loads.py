"""What salts would give, against records that are produced with them."""

from __future__ import annotations

import pytest

from barnabas.client.heavy_keys import HeavyKey
from barnabas.client.key_loads import Fit, PlacedKey, best_fit, salted_loads, times_even
from barnabas.client.partitioner import partition_for
from barnabas.client.salted_keys import forms_of


@pytest.mark.parametrize("partitioner", ["murmur2_random", "consistent_random"])
def test_salted_records_are_where_the_partitioner_puts_them(partitioner: str) -> None:
    at = partition_for(b"alice", 4, partitioner)
    assert at is not None
    records = [7, 7, 7, 7]
    expected = list(records)
    records[at] += 10
    for number in range(10):
        target = partition_for(b"alice-%d" % (number % 3), 4, partitioner)
        assert target is not None
        expected[target] += 1
    assert salted_loads(records, [PlacedKey(at, HeavyKey(b"alice", 10, 0))], 3, partitioner) == expected


def test_only_what_a_key_has_at_least_is_moved() -> None:
    loads = salted_loads([100, 0], [PlacedKey(0, HeavyKey(b"k", 90, 30))], 8, "murmur2_random")
    moved_away = [partition_for(key, 2) for key in forms_of(b"k", 8)].count(1)
    assert moved_away, "a key of these moves"
    assert abs(loads[1] - moved_away * 60 / 8) < 8, loads
    assert sum(loads) == 100


def test_the_partitioner_that_explains_the_records_is_found() -> None:
    keys = [b"key-%d" % number for number in range(50)]
    for name in ("murmur2_random", "consistent_random", "fnv1a_random"):
        placed = [PlacedKey(partition_for(key, 12, name) or 0, HeavyKey(key, 3, 0)) for key in keys]
        assert best_fit(placed, 12) == Fit(name, 1.0)
    assert best_fit([], 12) == Fit("murmur2_random", 0.0)


def test_how_uneven_loads_are() -> None:
    assert [times_even(loads) for loads in ([5, 5], [10, 0], [0, 0])] == [1, 2, 0]
