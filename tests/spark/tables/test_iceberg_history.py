"""The snapshots that a table keeps: few, whatever the batches, and no reader loses the last hour."""

from __future__ import annotations

from barnabas.spark.tables.iceberg_history import to_take_out

DAY_S = 86400


def history(seconds: int) -> list[int]:
    """Return the seconds of which snapshots are left, if there is one each second and each takes others out."""
    kept: list[tuple[int, int]] = []
    for second in range(seconds):
        kept.append((second, second * 1000))
        gone = set(to_take_out(kept, second * 1000))
        kept = [each for each in kept if each[0] not in gone]
    return [each[0] for each in kept]


def test_what_is_left_of_some_hours() -> None:
    seconds = 3 * 3600
    left = history(seconds)
    assert left[-10:] == list(range(seconds - 10, seconds)), "each of the last seconds"
    assert {second // 60 for second in left} >= set(range(seconds // 60 - 59, seconds // 60)), "one of each minute"
    assert {second // 3600 for second in left} == {0, 1, 2}, "one of each hour"
    assert len(left) < 10 + 60 + 3 + 2


def test_a_week_of_minutes() -> None:
    kept: list[tuple[int, int]] = []
    most = 0
    for second in range(0, 7 * DAY_S, 60):
        kept.append((second, second * 1000))
        gone = set(to_take_out(kept, second * 1000))
        kept = [each for each in kept if each[0] not in gone]
        most = max(most, len(kept))
    assert most < 10 + 60 + 24 + 7 + 4


def test_few_snapshots_far_apart_stay() -> None:
    assert to_take_out([(n, n * DAY_S * 1000) for n in range(30)], 30 * DAY_S * 1000) == []
