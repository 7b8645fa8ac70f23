"""Recovery points, log starts and high watermarks in their files."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.log import offset_checkpoints
from barnabas.log.log_config import LogConfig
from barnabas.log.offset_checkpoints import Key, OffsetCheckpoints
from barnabas.log.partition_log import PartitionLog
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, manager, now_ms, read_all
from tests.simulation.disk import SimDisk


class Checkpointed:
    """Logs of one directory and their checkpoints, without the manager that brings them together."""

    def __init__(self, logs: int = 1, config: LogConfig = CONFIG) -> None:
        self.disk = SimDisk()
        self.disk.mkdir(ROOT)
        self.checkpoints = OffsetCheckpoints(self.disk, ROOT)
        self.config = config
        self.logs: dict[Key, PartitionLog] = {}
        for index in range(logs):
            self.add(index)

    def add(self, index: int) -> PartitionLog:
        directory = f"{ROOT}/{TOPIC}-{index}"
        self.disk.mkdir(directory)
        log = self.logs[TOPIC, index] = PartitionLog(self.disk, directory, self.config, now_ms=now_ms)
        log.on_truncate = lambda offset: self.checkpoints.lower_recovery_point((TOPIC, index), offset)
        return log

    def write(self) -> Generator[None, None, bool]:
        return self.checkpoints.write_stepwise(self.logs, ())

    def write_high_watermarks(self) -> Generator[None, None, bool]:
        return self.checkpoints.write_high_watermarks_stepwise(self.logs, ())


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
    stage = Checkpointed()
    disk, log = stage.disk, stage.logs[TOPIC, 0]
    append(log, 12)
    assert all_steps(stage.write())
    log.flush()
    disk.fail_call(1)
    with pytest.raises(OSError, match="simulated failure"):
        all_steps(stage.write())
    calls = disk.calls
    assert list(stage.write_high_watermarks()) == []
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
    stage = Checkpointed()
    disk, log = stage.disk, stage.logs[TOPIC, 0]
    append(log, 12)
    assert all_steps(stage.write())
    before = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    append(log, 12)
    log.high_watermark = 30
    assert all_steps(stage.write_high_watermarks())
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 30\n"
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == before
    calls = disk.calls
    assert all_steps(stage.write_high_watermarks())
    assert disk.calls == calls, "nothing has changed"


def three_logs(monkeypatch: pytest.MonkeyPatch) -> Checkpointed:
    """Three logs with flushed records, whose checkpoints are written; a step of a write looks at one of them."""
    monkeypatch.setattr(offset_checkpoints, "LOGS_PER_STEP", 1)
    stage = Checkpointed(3, LogConfig())
    for log in stage.logs.values():
        append(log, 6)
        log.high_watermark = 12
        log.flush()
    assert all_steps(stage.write())
    return stage


def test_many_logs_are_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = three_logs(monkeypatch)
    disk = stage.disk
    for log in stage.logs.values():
        append(log, 1)
        log.flush()
    writing = stage.write()
    calls = disk.calls
    assert [next(writing) for _ in range(9)] == [None] * 9, "each of them, and each line of two files"
    assert disk.calls == calls
    assert all_steps(writing)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint").endswith(
        b"\norders 0 14\norders 1 14\norders 2 14\n"
    )


@pytest.mark.parametrize("steps", range(1, 10))
def test_a_truncation_during_a_write_stands(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    stage = three_logs(monkeypatch)
    disk, first = stage.disk, stage.logs[TOPIC, 0]
    writing = stage.write()
    watermarks = stage.write_high_watermarks()
    for _ in range(steps):
        next(writing)
    next(watermarks)
    first.truncate_to(4)
    written = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    assert b"\norders 0 4\n" in written
    assert not all_steps(writing)
    assert not all_steps(watermarks)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == written
    assert all_steps(stage.write())


def test_a_log_that_is_forgotten_during_a_write_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = three_logs(monkeypatch)
    writing = stage.write()
    next(writing)
    del stage.logs[TOPIC, 0]
    assert stage.checkpoints.forget((TOPIC, 0))
    assert all_steps(stage.write())
    stage.add(0)
    assert not all_steps(writing)
    assert b"orders 0" not in stage.disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
