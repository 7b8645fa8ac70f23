"""Counting the most frequent keys: what the sketch promises, against exact counts."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from barnabas.client.heavy_keys import HeavyKey, HeavyKeys


def counted(keys: list[bytes], counters: int) -> HeavyKeys:
    sketch = HeavyKeys(counters)
    for key in keys:
        sketch.add(key)
    return sketch


def test_counts_are_exact_while_each_key_has_a_counter() -> None:
    sketch = counted([b"a", b"b", b"a", b"c"], 3)
    assert sketch.heaviest(2) == [HeavyKey(b"a", 2, 0), HeavyKey(b"c", 1, 0)]
    assert sketch.bound == 0


def test_a_new_key_takes_over_the_smallest_counter() -> None:
    sketch = counted([b"a", b"a", b"a", b"b", b"b", b"c"], 2)
    assert sketch.heaviest(2) == [HeavyKey(b"c", 3, 2), HeavyKey(b"a", 3, 0)]
    assert sketch.heaviest(1)[0].at_least == 1
    assert sketch.bound == 3


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold(seed: int) -> None:
    rng = random.Random(seed)
    keys = [b"%d" % int(rng.paretovariate(0.6)) for _ in range(20_000)]
    sketch, exact = counted(keys, 50), Counter(keys)
    found = sketch.heaviest(50)
    assert len(exact) > 500, "most keys have no counter"
    assert sum(each.records for each in found) == len(keys)
    for each in found:
        assert each.at_least <= exact[each.key] <= each.records
        assert each.error <= sketch.bound <= len(keys) / 50
    assert {key for key, count in exact.items() if count > sketch.bound} <= {each.key for each in found}
