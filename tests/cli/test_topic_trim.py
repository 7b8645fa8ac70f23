"""`topic trim`: the offset that each partition gets."""

from __future__ import annotations

import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.topic_trim import _status, new_starts
from barnabas.client.admin import OffsetAndTimestamp, TopicPartition
from barnabas.client.log_points import Anchor, Point

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOUNDS = {T0: (5, 20), T1: (0, 8)}


class _Times:
    """Partition 0 has a record at or after any time at 11; all records of partition 1 are older."""

    def list_offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        return {each: OffsetAndTimestamp(11 if each == T0 else -1, -1, -1) for each in wanted}


def offsets(point: Point) -> dict[TopicPartition, int]:
    return new_starts(_Times(), point, BOUNDS)  # type: ignore[arg-type]


def test_places_are_counted_in_each_partition() -> None:
    assert offsets(Point(Anchor.EXACT, 7)) == {T0: 7, T1: 7}
    assert offsets(Point(Anchor.EXACT, 2)) == {T0: 5, T1: 2}, "a start does not move back"
    assert offsets(Point(Anchor.END, 3)) == {T0: 17, T1: 5}
    assert offsets(Point(Anchor.START, 2)) == {T0: 7, T1: 2}


def test_a_time_deletes_older_records_only() -> None:
    assert offsets(Point(Anchor.TIME, 1_000)) == {T0: 11, T1: 8}


def test_nothing_is_deleted_behind_the_end_or_without_a_leader() -> None:
    with pytest.raises(Failure, match="partition t-1 ends at offset 8, before 9"):
        offsets(Point(Anchor.EXACT, 9))
    with pytest.raises(Failure, match="partition t-0 has no leader"):
        new_starts(_Times(), Point(Anchor.END), {T0: (None, None)})  # type: ignore[arg-type]


def test_a_partition_that_has_nothing_to_delete_is_unchanged() -> None:
    assert [_status(offsets, False) for offsets in (2, 0)] == ["deleted", "unchanged"]
    assert [_status(offsets, True) for offsets in (2, 0)] == ["would be deleted", "unchanged"]
