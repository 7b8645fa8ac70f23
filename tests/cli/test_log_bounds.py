from __future__ import annotations

from typing import cast

import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import Bounds, offsets_of
from barnabas.client.admin import Admin, OffsetAndTimestamp, TopicPartition
from barnabas.client.log_points import Anchor, Point
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOUNDS: dict[TopicPartition, Bounds] = {T0: (2, 9), T1: (0, 5)}


class Leaders:
    """Answers about times as the leaders of two partitions do; the second one has no record that late."""

    def __init__(self, second: OffsetAndTimestamp | KafkaError) -> None:
        self._second = second

    def list_offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        assert wanted == {T0: 1000, T1: 1000}
        return {T0: OffsetAndTimestamp(4, 1000, 0), T1: self._second}


def test_a_time_after_the_last_record_is_the_end() -> None:
    admin = cast("Admin", Leaders(OffsetAndTimestamp(-1, -1, -1)))
    assert offsets_of(admin, Point(Anchor.TIME, 1000), BOUNDS) == {T0: 4, T1: 5}


def test_a_leader_that_does_not_answer_is_an_error_and_not_the_end_of_the_log() -> None:
    """`topic trim --before @TIME` would delete everything there."""
    admin = cast("Admin", Leaders(error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
    with pytest.raises(KafkaError):
        offsets_of(admin, Point(Anchor.TIME, 1000), BOUNDS)


def test_a_partition_without_a_leader_has_no_offset() -> None:
    admin = cast("Admin", None)
    with pytest.raises(Failure, match="partition t-1 has no leader now"):
        offsets_of(admin, Point(Anchor.START, 0), {T0: (2, 9), T1: (None, None)})
