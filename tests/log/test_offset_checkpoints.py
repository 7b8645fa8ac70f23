"""Recovery points, log starts and high watermarks in their files."""

from __future__ import annotations

import pytest

from barnabas.log.log_config import LogConfig
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, manager, read_all
from tests.simulation.disk import SimDisk


def test_checkpoints_are_kafkas_and_written_only_when_they_change() -> None:
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 12)
    log.high_watermark = 24
    log.delete_records_before(3)
    assert log.recovery_point > 3
    opened.checkpoint()
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == b"0\n1\norders 0 %d\n" % log.recovery_point
    assert disk.contents(f"{ROOT}/log-start-offset-checkpoint") == b"0\n1\norders 0 3\n"
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 24\n"
    calls = disk.calls
    opened.checkpoint()
    assert disk.calls == calls


@pytest.mark.parametrize("clean", [True, False])
def test_log_start_survives_because_it_is_flushed_first(clean: bool) -> None:
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    append(log, 6)
    log.high_watermark = 12
    log.delete_records_before(7)
    assert log.recovery_point == 0
    if clean:
        opened.close()
    else:
        opened.checkpoint()
        assert log.recovery_point == 12
        disk.crash()
    again = manager(disk).get(TOPIC, 0)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (7, 12)
    assert [r.offset for r in read_all(again)] == list(range(7, 12))


def test_checkpointed_log_start_beyond_the_log_is_ignored() -> None:
    disk = SimDisk()
    opened = manager(disk)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 3)
    opened.close()
    disk.put(f"{ROOT}/log-start-offset-checkpoint", b"0\n1\norders 0 7\n")
    again = manager(disk).get(TOPIC, 0)
    assert again is not None
    assert again.log_start_offset == 0


def test_high_watermarks_are_written_between_the_other_checkpoints() -> None:
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 12)
    opened.checkpoint()
    before = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    append(log, 12)
    log.high_watermark = 30
    opened._checkpoints.write_high_watermarks(opened._logs, opened._unopened)
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 30\n"
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == before
    calls = disk.calls
    opened._checkpoints.write_high_watermarks(opened._logs, opened._unopened)
    assert disk.calls == calls, "nothing has changed"
