"""Where a follower truncates its log."""

from __future__ import annotations

import pytest

from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.replication.follower_log import (
    begin_to_follow,
    truncate_to_divergence,
    truncate_to_end,
    truncate_to_start,
)
from tests.log.small_log import NOW_MS, open_log


def log_with(*epochs: int) -> PartitionLog:
    """Return a log with one record of each epoch."""
    log = open_log()
    for epoch in epochs:
        log.append_as_follower(
            build_batch([(NOW_MS, b"k", b"v", ())], base_offset=log.log_end_offset, leader_epoch=epoch), 99
        )
    return log


@pytest.mark.parametrize(
    ("epoch", "end_offset", "kept"),
    [
        (5, 4, 4),  # both have the epoch, the leader's ends earlier
        (3, 9, 3),  # here it ends earlier
        (3, 1, 1),
        (4, 4, 3),  # unknown here: to the end of the epoch before it
        (1, 2, 0),  # older than all: where the first epoch begins
    ],
)
def test_where_two_logs_part(epoch: int, end_offset: int, kept: int) -> None:
    log = log_with(3, 3, 3, 5, 5)
    truncate_to_divergence(log, epoch, end_offset)
    assert log.log_end_offset == kept


def test_an_epoch_without_records_is_forgotten() -> None:
    log = log_with(3)
    log.begin_epoch(5)
    truncate_to_divergence(log, 3, 1)
    assert (log.log_end_offset, log.latest_epoch) == (1, 3)


def test_a_log_without_epochs_begins_at_its_high_watermark() -> None:
    log = log_with(-1, -1, -1)
    log.high_watermark = 2
    begin_to_follow(log)
    assert log.log_end_offset == 2
    log = log_with(1, 1)
    begin_to_follow(log)
    assert log.log_end_offset == 2


def test_the_leaders_range() -> None:
    log = log_with(1, 1, 1)
    assert (truncate_to_end(log, 3), truncate_to_end(log, 2), log.log_end_offset) == (False, True, 2)
    assert (truncate_to_start(log, 2), truncate_to_start(log, 3), log.log_start_offset) == (False, True, 3)
