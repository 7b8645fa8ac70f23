"""Housekeeping in steps: few logs in each, an end when the logs are closed, and what a step must not overwrite.

What it does to a log is in `test_log_manager` and `test_offset_checkpoints`.
"""

from __future__ import annotations

import pytest

from barnabas.log import housekeeping, log_manager, offset_checkpoints
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from tests.log.small_log import Clock
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append
from tests.log.test_log_manager import timed
from tests.simulation.disk import SimDisk


def count_uses(monkeypatch: pytest.MonkeyPatch, name: str, looked_at: list[int]) -> None:
    """Count each use of a property of logs in the last element."""
    found = getattr(PartitionLog, name)

    def counted(log: PartitionLog) -> object:
        looked_at[-1] += 1
        return found.__get__(log)

    def assigned(log: PartitionLog, value: object) -> None:
        found.__set__(log, value)

    monkeypatch.setattr(PartitionLog, name, property(counted, assigned))


def many(monkeypatch: pytest.MonkeyPatch, clock: Clock, **settings: object) -> tuple[SimDisk, LogManager]:
    """Ten logs, of which a step looks at three."""
    for module in (housekeeping, offset_checkpoints):
        monkeypatch.setattr(module, "LOGS_PER_STEP", 3)
    disk = SimDisk()
    opened = timed(disk, clock, **settings)
    for partition in range(10):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 1)
    return disk, opened


def test_each_step_looks_at_few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(monkeypatch, clock)
    clock.ms += 600_000
    looked_at: list[int] = [0]
    for name in ("has_deleted_files", "recovery_point", "high_watermark"):
        count_uses(monkeypatch, name, looked_at)
    for _ in opened.housekeeping_stepwise():
        looked_at.append(0)
    # The last log of one round and the first three of the next, with what each round asks of a log.
    assert max(looked_at) <= 12, looked_at
    assert sum(looked_at) >= 30


def test_a_step_flushes_fewer_logs_than_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(monkeypatch, clock)
    monkeypatch.setattr(housekeeping, "LOGS_PER_STEP", 20)
    for log in opened.logs.values():
        log.reconfigure(LogConfig(flush_ms=1000))
    clock.ms += 1_000
    flushed_then = [
        sum(log.recovery_point == log.log_end_offset for log in opened.logs.values())
        for _ in opened.housekeeping_stepwise()
    ]
    assert flushed_then[:6] == [2, 4, 6, 8, 10, 10]


def test_a_step_writes_the_indexes_of_few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(monkeypatch, clock)
    monkeypatch.setattr(housekeeping, "LOGS_PER_STEP", 20)
    wrote: list[int] = [0]
    write = PartitionLog.write_index_entries

    def counted(log: PartitionLog) -> bool:
        wrote[-1] += 1
        write(log)
        return True

    monkeypatch.setattr(PartitionLog, "write_index_entries", counted)
    for _ in opened.housekeeping_stepwise():
        wrote.append(0)
    assert [count for count in wrote if count] == [2, 2, 2, 2, 2]


def test_the_files_of_few_deleted_logs_go_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_manager, "LOGS_PER_TURN", 4)
    clock = Clock()
    disk, opened = many(monkeypatch, clock)
    for partition in range(10):
        opened.delete(TOPIC, partition)
    clock.ms += 600_000
    left = [len([name for name in disk.listdir(ROOT) if "orders" in name]) for _ in opened.housekeeping_stepwise()]
    assert [each for number, each in enumerate(left) if number == 0 or each != left[number - 1]] == [10, 6, 2]
    opened.housekeeping()
    assert not [name for name in disk.listdir(ROOT) if "orders" in name]


def test_it_ends_when_the_logs_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(monkeypatch, clock)
    clock.ms += 600_000
    steps = opened.housekeeping_stepwise()
    next(steps)
    opened.close()
    calls = disk.calls
    assert list(steps) == []
    assert disk.calls == calls


def test_retention_opens_few_logs_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(monkeypatch, clock)
    opened.close()
    monkeypatch.setattr(housekeeping, "LOGS_OPENED_PER_STEP", 2)
    again = timed(disk, clock)
    clock.ms += 600_000
    opened_then = [len(again.logs) for _ in again.housekeeping_stepwise()]
    assert opened_then[:6] == [0, 2, 4, 6, 8, 10]


def test_checkpoints_that_a_truncation_has_stopped_are_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(monkeypatch, clock)
    clock.ms += 600_000
    wrote = f"{ROOT}/replication-offset-checkpoint"
    for number, _ in enumerate(opened.housekeeping_stepwise()):
        truncated = opened.get(TOPIC, 0)
        assert truncated is not None
        assert truncated.on_truncate is not None
        truncated.on_truncate(number)
    assert not disk.exists(wrote)
    clock.ms += 1
    opened.housekeeping()
    assert disk.exists(wrote)
