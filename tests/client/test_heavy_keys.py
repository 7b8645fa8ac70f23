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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("parts", [2, 7])
def test_the_bounds_hold_for_merged_parts(seed: int, parts: int) -> None:
    rng = random.Random(seed)
    keys = [b"%d" % int(rng.paretovariate(0.6)) for _ in range(20_000)]
    exact, merged = Counter(keys), HeavyKeys(50)
    for part in range(parts):
        found = counted(keys[part::parts] if part else sorted(keys[part::parts]), 50)
        merged.merge(found.all(), found.bound)
    assert 0 < merged.bound <= len(keys) / 50
    for each in merged.all():
        assert each.at_least <= exact[each.key] <= each.records
        assert each.error <= merged.bound
    assert {key for key, count in exact.items() if count > merged.bound} <= {each.key for each in merged.all()}
    merged.add(b"another", 5)
    assert merged.heaviest(50)[-1].records <= exact.total() + 5
    assert any(each.key == b"another" and each.at_least == 5 for each in merged.all())


def test_parts_with_few_keys_merge_exactly_and_a_dropped_key_is_in_the_bound() -> None:
    merged = counted([b"a", b"a", b"b"], 2)
    other = counted([b"a", b"c", b"c", b"c"], 2)
    merged.merge(other.all(), other.bound)
    assert merged.heaviest(2) == [HeavyKey(b"c", 3, 0), HeavyKey(b"a", 3, 0)]
    assert merged.bound == 3
