"""Recovery points, log starts and high watermarks in their files."""

from __future__ import annotations

import errno
from collections.abc import Generator

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.offset_checkpoints import Key, OffsetCheckpoints
from barnabas.log.partition_log import PartitionLog
from barnabas.simulation.disk import SimDisk
from barnabas.turns import ELEMENT, new_budget
from tests.at_once import at_once, turn_by_turn
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, manager, now_ms, read_all
from tests.short_turns import set_turn


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

    def delete(self, index: int) -> None:
        """Delete a log and its files."""
        log = self.logs.pop((TOPIC, index))
        directory = f"{log.directory}-delete"
        self.disk.rename(log.directory, directory)
        log.directory_renamed(directory)
        log.close(clean=False)
        self.disk.rmtree(directory)

    def write(self) -> Generator[None, None, bool]:
        return turn_by_turn(self.checkpoints.write(self.logs, ()))

    def write_high_watermarks(self) -> Generator[None, None, bool]:
        return turn_by_turn(self.checkpoints.write_high_watermarks(self.logs, ()))


def rest(writing: Generator[None, None, bool]) -> bool:
    """Take the turns that are left of a write, and return its result."""
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
    at_once(opened.checkpoint())
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == b"0\n1\norders 0 %d\n" % log.recovery_point
    assert disk.contents(f"{ROOT}/log-start-offset-checkpoint") == b"0\n1\norders 0 3\n"
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 24\n"
    calls = disk.calls
    at_once(opened.checkpoint())
    assert disk.calls == calls


def test_after_a_failed_write_an_unchanged_file_is_written_too() -> None:
    stage = Checkpointed()
    disk, log = stage.disk, stage.logs[TOPIC, 0]
    append(log, 12)
    assert rest(stage.write())
    log.flush()
    disk.fail_call(1)
    with pytest.raises(OSError, match="simulated failure"):
        rest(stage.write())
    calls = disk.calls
    assert rest(stage.write_high_watermarks())
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
        at_once(opened.close())
    else:
        at_once(opened.checkpoint())
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
    at_once(opened.close())
    disk.put(f"{ROOT}/log-start-offset-checkpoint", b"0\n1\norders 0 7\n")
    again = manager(disk).get(TOPIC, 0)
    assert again is not None
    assert again.log_start_offset == 0


def test_high_watermarks_are_written_between_the_other_checkpoints() -> None:
    stage = Checkpointed()
    disk, log = stage.disk, stage.logs[TOPIC, 0]
    append(log, 12)
    assert rest(stage.write())
    before = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    append(log, 12)
    log.high_watermark = 30
    assert rest(stage.write_high_watermarks())
    assert disk.contents(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 30\n"
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == before
    calls = disk.calls
    assert rest(stage.write_high_watermarks())
    assert disk.calls == calls, "nothing has changed"


def three_logs(monkeypatch: pytest.MonkeyPatch) -> Checkpointed:
    """Three logs with flushed records, whose checkpoints are written; a turn of the next write looks at one of them."""
    stage = Checkpointed(3, LogConfig())
    for log in stage.logs.values():
        append(log, 6)
        log.high_watermark = 12
        log.flush()
    assert rest(stage.write())
    set_turn(monkeypatch, ELEMENT)
    return stage


def test_many_logs_are_written_over_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = three_logs(monkeypatch)
    disk = stage.disk
    for log in stage.logs.values():
        append(log, 1)
        log.flush()
    writing = stage.write()
    calls = disk.calls
    assert [next(writing) for _ in range(8)] == [None] * 8, "each of them but the first, and each line of two files"
    assert disk.calls == calls
    assert rest(writing)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint").endswith(
        b"\norders 0 14\norders 1 14\norders 2 14\n"
    )


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_truncation_during_a_write_stands(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    stage = three_logs(monkeypatch)
    disk, first = stage.disk, stage.logs[TOPIC, 0]
    writing = stage.write()
    watermarks = stage.write_high_watermarks()
    for _ in range(turns):
        next(writing)
    new_budget()
    next(watermarks)
    first.truncate_to(4)
    written = disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    assert b"\norders 0 4\n" in written
    assert not rest(writing)
    assert not rest(watermarks)
    assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == written
    assert rest(stage.write())


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_write_that_is_given_up_writes_nothing(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    stage = three_logs(monkeypatch)
    append(stage.logs[TOPIC, 0], 1)
    stage.logs[TOPIC, 0].flush()
    writing = stage.write()
    for _ in range(turns):
        next(writing)
    stage.checkpoints.give_up()
    calls = stage.disk.calls
    assert not rest(writing)
    assert stage.disk.calls == calls


def test_a_log_that_is_forgotten_during_a_write_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = three_logs(monkeypatch)
    writing = stage.write()
    next(writing)
    del stage.logs[TOPIC, 0]
    stage.checkpoints.forget((TOPIC, 0))
    assert not rest(writing)
    assert b"orders 0" not in stage.disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")


@pytest.mark.parametrize("turns", range(1, 4))
def test_a_log_that_is_deleted_during_a_write_is_passed_over(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    stage = Checkpointed(4, LogConfig())
    for log in stage.logs.values():
        append(log, 6)
        log.high_watermark = 12
        # A write of its start flushes it.
        log.delete_records_before(7)
    set_turn(monkeypatch, ELEMENT)
    writing = stage.write()
    for _ in range(turns):
        next(writing)
    stage.delete(3)
    assert rest(writing)
    assert stage.disk.contents(f"{ROOT}/log-start-offset-checkpoint") == (b"0\n3\norders 0 7\norders 1 7\norders 2 7\n")


FILES = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")


def test_a_log_is_forgotten_in_every_file_and_after_a_power_cut() -> None:
    disk = SimDisk()
    opened = manager(disk)
    for index in range(2):
        log = opened.get_or_create(TOPIC, index, TOPIC_ID, LogConfig())
        append(log, 6)
        log.high_watermark = 12
        log.delete_records_before(7)
        log.flush()
    at_once(opened.checkpoint())
    opened.delete(TOPIC, 0)
    opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    disk.crash()
    for name, offset in zip(FILES, (12, 7, 12), strict=True):
        assert disk.contents(f"{ROOT}/{name}") == b"0\n1\norders 1 %d\n" % offset


@pytest.mark.parametrize("number", range(3))
def test_a_log_that_the_disk_did_not_forget_is_forgotten_by_the_next_attempt(number: int) -> None:
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    append(log, 6)
    log.high_watermark = 12
    log.delete_records_before(7)
    log.flush()
    at_once(opened.checkpoint())
    opened.delete(TOPIC, 0)
    disk.on_call = lambda call, path: OSError(errno.EIO, "lost") if FILES[number] in path else None
    with pytest.raises(KafkaStorageError):
        opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    disk.on_call = None
    new = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig())
    assert (new.log_start_offset, new.log_end_offset) == (0, 0)
    for name in FILES:
        assert disk.contents(f"{ROOT}/{name}") == b"0\n0\n"
