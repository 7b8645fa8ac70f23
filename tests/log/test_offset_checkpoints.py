"""Recovery points, log starts and high watermarks in their files."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.log import offset_checkpoints
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, manager, read_all
from tests.simulation.disk import SimDisk


def all_steps(writing: Generator[None, None, bool]) -> bool:
    """Take all steps of a write; return what it returns."""
    while True:
        try:
            next(writing)
        except StopIteration as end:
            return bool(end.value)


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


def test_after_a_failed_write_an_unchanged_file_is_written_too() -> None:
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 12)
    opened.checkpoint()
    log.flush()
    disk.fail_call(1)
    with pytest.raises(OSError, match="simulated failure"):
        opened.checkpoint()
    calls = disk.calls
    assert list(opened._checkpoints.write_high_watermarks_stepwise(opened._logs, opened._unopened)) == []
    assert disk.calls > calls, "only a write shows that the disk takes writes again"


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
    assert all_steps(opened._checkpoints.write_high_watermarks_stepwise(opened._logs, opened._unopened))
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 30\n"
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == before
    calls = disk.calls
    assert all_steps(opened._checkpoints.write_high_watermarks_stepwise(opened._logs, opened._unopened))
    assert disk.calls == calls, "nothing has changed"


def three_logs(monkeypatch: pytest.MonkeyPatch) -> tuple[SimDisk, LogManager]:
    """Three logs with flushed records, whose checkpoints are written; a step of a write looks at one of them."""
    monkeypatch.setattr(offset_checkpoints, "LOGS_PER_STEP", 1)
    disk = SimDisk()
    opened = manager(disk)
    for index in range(3):
        log = opened.get_or_create(TOPIC, index, TOPIC_ID, LogConfig())
        append(log, 6)
        log.high_watermark = 12
        log.flush()
    opened.checkpoint()
    return disk, opened


def test_many_logs_are_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, opened = three_logs(monkeypatch)
    for _, log in opened:
        append(log, 1)
        log.flush()
    writing = opened._checkpoints.write_stepwise(opened._logs, opened._unopened)
    calls = disk.calls
    assert [next(writing) for _ in range(9)] == [None] * 9, "each of them, and each line of two files"
    assert disk.calls == calls
    assert all_steps(writing)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint").endswith(
        b"\norders 0 14\norders 1 14\norders 2 14\n"
    )


@pytest.mark.parametrize("steps", range(1, 10))
def test_a_truncation_during_a_write_stands(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    disk, opened = three_logs(monkeypatch)
    first = opened.get(TOPIC, 0)
    assert first is not None
    writing = opened._checkpoints.write_stepwise(opened._logs, opened._unopened)
    watermarks = opened._checkpoints.write_high_watermarks_stepwise(opened._logs, opened._unopened)
    for _ in range(steps):
        next(writing)
    next(watermarks)
    first.truncate_to(4)
    written = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    assert b"\norders 0 4\n" in written
    assert not all_steps(writing)
    assert not all_steps(watermarks)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == written
    assert all_steps(opened._checkpoints.write_stepwise(opened._logs, opened._unopened))


def test_a_log_that_is_forgotten_during_a_write_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, opened = three_logs(monkeypatch)
    writing = opened._checkpoints.write_stepwise(opened._logs, opened._unopened)
    next(writing)
    opened.delete(TOPIC, 0)
    opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    assert not all_steps(writing)
    assert b"orders 0" not in disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
