"""How evenly keys spread over a topic's partitions, which keys are hot, and what salts for them would give.

Records and bytes of a partition are counted exactly, its keys by a sketch of fixed size (`HeavyKeys`). `report_of` computes
the rest from these counts. `barnabas topic skew` and `barnabas.spark.key_report` both make their report here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.heavy_keys import HeavyKeys
from barnabas.client.key_loads import Fit, PlacedKey, best_fit, salted_loads, times_even
from barnabas.client.partitioner import LIBRARY_DEFAULTS

__all__ = ["Choice", "CountedPartition", "KeyReport", "PlacedKey", "report_of"]

_FITTED_KEYS = 100
"""Keys that tell which partitioner placed them: the most frequent ones."""


class Choice(NamedTuple):
    """Records of each partition under a choice of keys; each may be wrong by `error_records`."""

    keys: str
    records: list[int]
    error_records: int = 0

    @property
    def times_even(self) -> float:
        """How often an even share the heaviest partition has; 1 is perfectly even."""
        return round(times_even(self.records), 2)


class CountedPartition:
    """The records of one partition, counted.

    Attributes:
        records: how many.
        without_key: how many of them have no key.
        size_bytes: of their keys and values.
        keys: the keys' counts.
    """

    def __init__(self, counters: int) -> None:
        self.keys = HeavyKeys(counters)
        self.records = 0
        self.without_key = 0
        self.size_bytes = 0

    def __repr__(self) -> str:
        return f"<CountedPartition records={self.records} {self.keys!r}>"

    def add(self, key: bytes | None, size_bytes: int, records: int = 1) -> None:
        """Count records with one key, and the bytes that they have together."""
        self.records += records
        self.size_bytes += size_bytes
        if key is None:
            self.without_key += records
        else:
            self.keys.add(key, records)


@dataclass(frozen=True)
class KeyReport:
    """The loads that a topic's keys give to its partitions.

    Attributes:
        partitions: the counts of each partition.
        keys: the most frequent keys, the largest first, each with its partition.
        hot_keys: how many of them are hot.
        choices: the loads of the partitions as they are, and with the hot keys salted.
        fit: the partitioner that explains best where the keys are.
    """

    partitions: Sequence[CountedPartition]
    keys: Sequence[PlacedKey]
    hot_keys: int
    choices: Sequence[Choice]
    fit: Fit

    @property
    def records(self) -> int:
        """The records of all partitions."""
        return sum(each.records for each in self.partitions)


def report_of(
    found: Sequence[CountedPartition],
    hot_percent: float,
    salts: Sequence[int],
    partitioners: Iterable[str] = LIBRARY_DEFAULTS,
) -> KeyReport:
    """Return the report for partitions that were counted.

    Args:
        found: of each partition of the topic; one at least has records.
        hot_percent: a key is hot from this part of an even partition on.
        salts: the numbers of salts to compute.
        partitioners: those that the producers may use.
    """
    placed = [PlacedKey(number, key) for number, each in enumerate(found) for key in each.keys.all()]
    placed.sort(key=lambda each: each.counted.records, reverse=True)
    fit = best_fit(placed[:_FITTED_KEYS], len(found), partitioners)
    loads = [each.records for each in found]
    even = sum(loads) / len(loads)
    hot_keys = [each for each in placed if each.counted.records >= even * hot_percent / 100]
    choices = [Choice("as they are", loads)]
    error_records = sum(each.counted.error for each in hot_keys)
    for number in salts if hot_keys else ():
        salted = salted_loads(loads, hot_keys, number, fit.partitioner)
        choices.append(Choice(f"hot ones with {number} salts", salted, error_records))
    return KeyReport(found, placed, len(hot_keys), choices, fit)
