"""The records that each partition of a topic has, and would have if its hot keys were salted.

A hot key becomes several keys (`salted_keys`), whose partitions the producer's partitioner chooses. Its records take the
salts in turn. All other keys stay where they are.

Only what a key has at least (`HeavyKey.at_least`) is moved. So the load of a partition is wrong by at most the sum of
the moved keys' errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.heavy_keys import HeavyKey
from barnabas.client.partitioner import LIBRARY_DEFAULTS, partition_for
from barnabas.client.salted_keys import forms_of


class PlacedKey(NamedTuple):
    """A counted key and the partition that its records are in."""

    partition: int
    counted: HeavyKey


class Fit(NamedTuple):
    """A partitioner, and the share of the counted records that are where it puts their keys."""

    partitioner: str
    share: float


def salted_loads(records: Sequence[int], hot: Iterable[PlacedKey], salts: int, partitioner: str) -> list[int]:
    """Return the records of each partition if the hot keys had this number of salts."""
    loads = list(records)
    for partition, counted in hot:
        loads[partition] -= counted.at_least
        each, left_over = divmod(counted.at_least, salts)
        for salt, key in enumerate(forms_of(counted.key, salts)):
            target = partition_for(key, len(loads), partitioner)
            assert target is not None, "a salted key is never empty"
            loads[target] += each + int(salt < left_over)
    return loads


def best_fit(keys: Sequence[PlacedKey], partition_count: int, partitioners: Iterable[str] = LIBRARY_DEFAULTS) -> Fit:
    """Return the partitioner that puts the most counted records where they are; the first if there are none."""
    total = sum(counted.at_least for _, counted in keys)
    fits = [
        Fit(
            name,
            sum(
                counted.at_least
                for partition, counted in keys
                if partition_for(counted.key, partition_count, name) == partition
            )
            / (total or 1),
        )
        for name in partitioners
    ]
    return max(fits, key=lambda fit: fit.share)


def times_even(loads: Sequence[int]) -> float:
    """Return how often an even share the heaviest partition has; 1 is the best, the number of partitions the worst."""
    return max(loads) * len(loads) / (sum(loads) or 1)
