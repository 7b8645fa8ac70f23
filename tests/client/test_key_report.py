"""What is computed from counted partitions; `tests/cli/test_topic_skew.py` compares it with records of a producer."""

from __future__ import annotations

from barnabas.client.heavy_keys import HeavyKey
from barnabas.client.key_report import Choice, CountedPartition, PlacedKey, report_of
from barnabas.client.partitioner import partition_for


def counted(*keys: tuple[bytes | None, int]) -> CountedPartition:
    found = CountedPartition(10)
    for key, records in keys:
        found.add(key, 10 * records, records)
    return found


def test_a_report_of_two_partitions() -> None:
    at = partition_for(b"hot", 2) or 0
    loads = [counted((b"k", 1), (None, 3)), counted((b"k", 1), (None, 3))]
    loads[at].add(b"hot", 960, 96)
    report = report_of(loads, 25, [2])
    assert report.records == 104
    assert [each.size_bytes for each in report.partitions] == [40 + 960 * (at == 0), 40 + 960 * (at == 1)]
    assert [each.without_key for each in report.partitions] == [3, 3]
    assert report.keys[0] == PlacedKey(at, HeavyKey(b"hot", 96, 0))
    assert report.hot_keys == 1
    as_they_are, salted = report.choices
    assert as_they_are == Choice("as they are", [each.records for each in report.partitions])
    assert as_they_are.times_even == round(100 * 2 / 104, 2)
    assert (salted.keys, sum(salted.records)) == ("hot ones with 2 salts", 104)


def test_without_a_hot_key_there_is_nothing_to_salt() -> None:
    report = report_of([counted((b"a", 1)), counted((None, 9))], 90, [2, 4])
    assert (report.hot_keys, [each.keys for each in report.choices]) == (0, ["as they are"])
