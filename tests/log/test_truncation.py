"""The frame around a truncation: the copy is cut first, and a copy that cannot be cut is let go."""

from __future__ import annotations

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.simulation.disk import MUTATIONS, SimDisk
from tests.log.small_log import open_log, plain


def test_a_truncation_cuts_the_copy_first() -> None:
    log, disk = open_log(), SimDisk()
    log.future = future = open_log(disk)
    for each in (log, future):
        for _ in range(9):
            each.append_as_leader(plain(1), 0)
    ends = []
    log.on_truncate = lambda _: ends.append(future.log_end_offset)
    log.truncate_to(7)
    log.truncate_fully_and_start_at(4)
    assert ends == [7, 4]
    assert (future.log_end_offset, log.log_start_offset) == (4, 4)
    log.append_as_leader(plain(3), 0)
    future.append_as_leader(plain(3), 0)
    disk.on_call = lambda call, path: OSError(5, "broken", path) if call in MUTATIONS else None
    log.truncate_to(5)
    assert (log.log_end_offset, log.future) == (4, None), "the log goes on without a copy that cannot be cut"


def test_a_checkpoint_that_cannot_be_lowered_leaves_the_log_as_it_was() -> None:
    log = open_log()
    for _ in range(3):
        log.append_as_leader(plain(1), 0)

    def failing(offset: int) -> None:
        raise OSError(5, "broken")

    log.on_truncate = failing
    with pytest.raises(KafkaStorageError, match="cannot truncate orders-0: broken"):
        log.truncate_to(1)
    assert log.log_end_offset == 3
