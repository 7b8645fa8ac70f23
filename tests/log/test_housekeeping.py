"""Housekeeping turn by turn: few logs in each, an end when the logs are closed, and what a turn must not overwrite.

What it does to a log is in `test_log_manager` and `test_offset_checkpoints`.
"""

from __future__ import annotations

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.simulation.disk import SimDisk
from barnabas.turns import ELEMENT, LOG_OPENED, RECORD, REPLICA, WRITE
from tests.at_once import at_once, turn_by_turn
from tests.log.small_log import Clock
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append
from tests.log.test_log_manager import timed
from tests.short_turns import set_turn


def count_uses(monkeypatch: pytest.MonkeyPatch, name: str, looked_at: list[int]) -> None:
    """Count each use of a property of logs in the last element."""
    found = getattr(PartitionLog, name)

    def counted(log: PartitionLog) -> object:
        looked_at[-1] += 1
        return found.__get__(log)

    def assigned(log: PartitionLog, value: object) -> None:
        found.__set__(log, value)

    monkeypatch.setattr(PartitionLog, name, property(counted, assigned))


def many(clock: Clock, **settings: object) -> tuple[SimDisk, LogManager]:
    """Ten logs."""
    disk = SimDisk()
    opened = timed(disk, clock, **settings)
    for partition in range(10):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 1)
    return disk, opened


def changes(counts: list[int]) -> list[int]:
    """Return the counts that differ from those before them."""
    return [count for number, count in enumerate(counts) if number == 0 or count != counts[number - 1]]


def test_each_turn_looks_at_few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(clock)
    clock.ms += 600_000
    looked_at: list[int] = [0]
    for name in ("has_deleted_files", "recovery_point", "high_watermark"):
        count_uses(monkeypatch, name, looked_at)
    set_turn(monkeypatch, 3 * RECORD)
    for _ in turn_by_turn(opened.housekeeping()):
        looked_at.append(0)
    # The last log of one round and the first three of the next, with what each round asks of a log.
    assert max(looked_at) <= 12, looked_at
    assert sum(looked_at) >= 30


def test_a_turn_flushes_few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(clock)
    for log in opened.logs.values():
        log.reconfigure(LogConfig(flush_ms=1000))
    clock.ms += 1_000
    set_turn(monkeypatch, 2 * WRITE)
    flushed_then = [
        sum(log.recovery_point == log.log_end_offset for log in opened.logs.values())
        for _ in turn_by_turn(opened.housekeeping())
    ]
    assert changes(flushed_then) == [2, 4, 6, 8, 10]


def test_a_turn_only_looks_at_many_logs_with_nothing_to_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    _, opened = many(Clock())
    set_turn(monkeypatch, 2 * WRITE)
    assert list(turn_by_turn(opened.housekeeping())) == []


def test_a_turn_writes_the_indexes_of_few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    _, opened = many(clock)
    wrote: list[int] = [0]
    write = PartitionLog.write_index_entries

    def counted(log: PartitionLog) -> bool:
        wrote[-1] += 1
        write(log)
        return True

    monkeypatch.setattr(PartitionLog, "write_index_entries", counted)
    set_turn(monkeypatch, 2 * WRITE)
    for _ in turn_by_turn(opened.housekeeping()):
        wrote.append(0)
    assert max(wrote) <= 3, wrote
    assert sum(wrote) == 10


def test_the_files_of_few_deleted_logs_go_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(clock)
    for partition in range(10):
        opened.delete(TOPIC, partition)
    clock.ms += 600_000
    set_turn(monkeypatch, 4 * REPLICA)
    left = [len([name for name in disk.listdir(ROOT) if "orders" in name]) for _ in turn_by_turn(opened.housekeeping())]
    assert left == [6, 2]
    assert not [name for name in disk.listdir(ROOT) if "orders" in name]


def test_it_ends_when_the_logs_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    turns_of_all = 0
    for turns in range(1_000):
        clock = Clock()
        disk, opened = many(clock)
        for partition in (7, 8, 9):
            opened.delete(TOPIC, partition)
        clock.ms += 600_000
        with monkeypatch.context() as small:
            set_turn(small, ELEMENT)
            keeping_house = turn_by_turn(opened.housekeeping())
            if sum(1 for _ in zip(range(turns), keeping_house, strict=False)) < turns:
                turns_of_all = turns - 1
                break
            set_turn(small, 1_000_000)
            at_once(opened.close(clean=False))
            calls = disk.calls
            set_turn(small, ELEMENT)
            for _ in keeping_house:
                pass
        assert disk.calls == calls, turns
    assert turns_of_all > 30


def test_retention_opens_few_logs_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(clock)
    at_once(opened.close())
    again = timed(disk, clock)
    clock.ms += 600_000
    set_turn(monkeypatch, 2 * LOG_OPENED)
    opened_then = [len(again.logs) for _ in turn_by_turn(again.housekeeping())]
    assert changes(opened_then) == [2, 4, 6, 8, 10]


def test_checkpoints_that_a_truncation_has_stopped_are_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    disk, opened = many(clock)
    clock.ms += 600_000
    wrote = f"{ROOT}/replication-offset-checkpoint"
    set_turn(monkeypatch, 3 * RECORD)
    for number, _ in enumerate(turn_by_turn(opened.housekeeping())):
        truncated = opened.get(TOPIC, 0)
        assert truncated is not None
        assert truncated.on_truncate is not None
        truncated.on_truncate(number)
    assert not disk.exists(wrote)
    clock.ms += 1
    at_once(opened.housekeeping())
    assert disk.exists(wrote)


def test_a_clock_that_is_set_back_delays_nothing() -> None:
    clock, disk = Clock(), SimDisk()
    opened = timed(disk, clock)
    small = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(retention_bytes=1, segment_bytes=200))
    synced = opened.get_or_create(TOPIC, 1, TOPIC_ID, LogConfig(flush_ms=1_000))
    for log in (small, synced):
        for _ in range(10):
            append(log, 1)
        log.high_watermark = log.log_end_offset
    clock.ms -= 86_400_000
    at_once(opened.housekeeping())
    assert (small.log_start_offset, synced.recovery_point) == (0, synced.log_end_offset)
    clock.ms += 600_000
    at_once(opened.housekeeping())
    assert small.log_start_offset > 0
