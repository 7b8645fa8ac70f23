"""Logs that move between directories: the exchange, and what a start does after a crash at each call of the disk."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.log.compacted import pairs
from tests.log.small_log import Clock, plain
from tests.log.story import NOW_MS, read_all

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
KEY, TOPIC = ("t", 0), Uuid(b"t" * 16)
IDS = [Uuid(bytes([number]) * 16) for number in (1, 2)]


class Died(Exception):
    """The process ends here."""


def opened(
    disk: SimDisk, *, lost: int | None = None, clock: Clock | None = None, config: LogConfig | None = None
) -> LogDirectories:
    now_ms, settings = clock or Clock(), config or LogConfig()
    roots = ("/a", "/b")
    logs = LogDirectories([LogManager(disk, root, now_ms=now_ms, config_for=lambda _: settings) for root in roots])
    logs.ids = IDS
    if lost is not None:
        logs.take_offline(logs.online[lost], "broken", are_replicas_known=False)
    for each in logs.online:
        asyncio.run(each.open())
    logs.check()
    return logs


def begun(disk: SimDisk, records: int = 5) -> tuple[LogDirectories, PartitionLog, PartitionLog]:
    """Return logs with t-0 in a, and its copy in b that has all of its records."""
    logs = opened(disk)
    logs.place(*KEY, IDS[0])
    log = logs.get_or_create(*KEY, TOPIC, LogConfig())
    for _ in range(records):
        log.append_as_leader(plain(1), 3)
    log.flush()
    future = logs.moving.begin(KEY, logs.online[1], TOPIC)
    copy(log, future)
    future.flush()
    return logs, log, future


def copy(log: PartitionLog, future: PartitionLog) -> None:
    while future.log_end_offset < log.log_end_offset:
        end = log.log_end_offset
        future.append_as_follower(log.read(future.log_end_offset, 1 << 20, max_offset=end).read(), log.latest_epoch)


def values(logs: LogDirectories) -> int:
    found = logs.get(*KEY)
    assert found is not None
    return found.log_end_offset


def test_the_copy_takes_the_place_of_the_log() -> None:
    disk = SimDisk()
    logs, log, future = begun(disk)
    a, b = logs.online
    logs.moving.promised[KEY] = b
    assert logs.place(*KEY, IDS[0]) == IDS[1]
    a.cleaner.inherit(KEY, 2)
    assert logs.moving.exchange(KEY, a, b) is future
    assert (logs.directory_of(*KEY), logs.get(*KEY), future.directory) == (b, future, "/b/t-0")
    assert (a.cleaner.cleaned_to(KEY), b.cleaner.cleaned_to(KEY), logs.moving.found()) == (0, 2, [])
    assert log.directory.endswith("-delete")
    assert logs.place(*KEY, IDS[0]) == IDS[1]
    asyncio.run(logs.close())
    again = opened(disk)
    assert (values(again), again.directory_of(*KEY).root_dir) == (5, "/b")


def test_a_move_that_is_given_up() -> None:
    disk = SimDisk()
    logs, log, _ = begun(disk)
    logs.moving.give_up(KEY)
    logs.moving.give_up(KEY)
    assert (logs.moving.found(), logs.get(*KEY)) == ([], log)
    logs.moving.begin(KEY, logs.online[1], TOPIC)
    logs.delete(*KEY)
    assert logs.moving.found() == []
    assert repr(logs.moving) == "<MovingLogs []>"


@pytest.mark.parametrize("power", [True, False])
def test_a_crash_at_each_call_of_the_exchange_loses_nothing(power: bool) -> None:
    calls = ended = 0
    while not ended:
        calls += 1
        disk = SimDisk(calls)
        logs, _, _ = begun(disk)
        asyncio.run(logs.online[1].checkpoint())
        left = [calls]

        def dies(call: str, path: str, left: list[int] = left) -> OSError | None:
            left[0] -= 1
            if not left[0]:
                raise Died
            return None

        disk.on_call = dies
        try:
            logs.moving.exchange(KEY, *logs.online).append_as_leader(plain(1), 3)
            ended = 1
        except Died:
            pass
        disk.on_call = None
        disk.crash() if power else disk.kill()
        again = opened(disk)
        again.settle(*KEY, TOPIC, IDS[1])
        assert values(again) >= 5, calls
        holders = [each.root_dir for each in again.online if KEY in each]
        assert len(holders) == 1, calls
    assert calls > 3


def test_a_rename_that_fails_leaves_the_log_where_it_was() -> None:
    disk = SimDisk()
    logs, log, _ = begun(disk)
    a, b = logs.online
    for failing in ("/a", "/b"):
        disk.on_call = lambda call, path, at=failing: (
            OSError(5, "broken") if call == "rename" and path.startswith(at) and "t-0" in path else None
        )
        with pytest.raises(KafkaStorageError):
            logs.moving.exchange(KEY, a, b)
        disk.on_call = None
        assert (logs.get(*KEY), KEY in b.futures) == (log, True)
        log.append_as_leader(plain(1), 3)


def test_a_start_cuts_the_copy_back_to_the_log() -> None:
    disk = SimDisk()
    logs, log, future = begun(disk)
    log.append_as_leader(plain(3), 3)
    copy(log, future)
    log.truncate_to(6)
    asyncio.run(logs.close())
    again = opened(disk)
    found = again.online[1].futures.get(KEY)
    assert found is not None
    assert (found.log_end_offset, values(again)) == (5, 5)


def test_only_the_copy_is_left(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    logs, _, _ = begun(disk)
    asyncio.run(logs.close())
    waiting = opened(disk, lost=0)
    with pytest.raises(KafkaStorageError, match="/a is offline"):
        waiting.get(*KEY)
    assert KEY in waiting.online[0].futures
    asyncio.run(waiting.close())
    disk.rmtree("/a/t-0")
    again = opened(disk)
    assert (values(again), again.directory_of(*KEY).root_dir, again.broker_epoch) == (5, "/b", -1)
    assert "the copy takes its place, and ends at offset 5" in caplog.text


def test_a_copy_in_the_directory_of_its_log_goes() -> None:
    disk = SimDisk()
    logs, _, _ = begun(disk)
    asyncio.run(logs.close())
    for path in disk.paths():
        if path.startswith("/b/t-0"):
            disk.put(path.replace("/b/", "/a/"), disk.contents(path))
    again = opened(disk)
    assert [each.root_dir for _, each in again.moving.found()] == ["/b"]


def test_the_log_knows_its_copy_until_the_move_ends() -> None:
    logs, log, future = begun(SimDisk())
    assert log.future is future
    logs.moving.give_up(KEY)
    assert log.future is None
    log.truncate_to(3)
    again = logs.moving.begin(KEY, logs.online[1], TOPIC)
    copy(log, again)
    log.truncate_to(1)
    assert (again.log_end_offset, future.log_end_offset) == (1, 5)
    moved = logs.moving.exchange(KEY, *logs.online)
    assert (moved.future, log.future) == (None, None)


def put(log: PartitionLog, key: bytes, value: bytes | None) -> None:
    log.append_as_leader(build_batch([(NOW_MS, key, value, ())]), 3)
    log.high_watermark = log.log_end_offset


def clean(logs: LogDirectories, clock: Clock) -> None:
    """Clean t-0 in a, as often as a tombstone needs."""
    found = logs.get(*KEY)
    assert found is not None
    for number in range(3):
        put(found, b"other", b"%d" % number)
        found.roll()
        clock.ms += 60_000
        logs.online[0].cleaner.poll()


def with_compacted_log(disk: SimDisk, clock: Clock) -> tuple[LogDirectories, PartitionLog]:
    """Return the logs of directories, and a compacted one in the first directory."""
    logs = opened(disk, clock=clock, config=COMPACTED)
    logs.place(*KEY, IDS[0])
    return logs, logs.get_or_create(*KEY, TOPIC, COMPACTED)


def test_a_copy_begins_again_if_its_log_was_cleaned_without_it() -> None:
    """The copy has a record whose tombstone the log has no longer: the tombstone would never come, and the record would be back."""
    disk, clock = SimDisk(), Clock()
    logs, log = with_compacted_log(disk, clock)
    put(log, b"gone", b"old")
    log.roll()
    future = logs.moving.begin(KEY, logs.online[1], TOPIC)
    copy(log, future)
    put(log, b"gone", None)
    clean(logs, clock)
    assert (0, "gone", "old") in pairs(read_all(log)), "no cleaning during the move"
    asyncio.run(logs.close())

    alone = opened(disk, lost=1, clock=clock, config=COMPACTED)
    clean(alone, clock)
    left = alone.get(*KEY)
    assert left is not None
    assert "gone" not in [key for _, key, _ in pairs(read_all(left))]
    asyncio.run(alone.close())

    again = opened(disk, clock=clock, config=COMPACTED)
    source, target = again.get(*KEY), again.online[1].futures.get(KEY)
    assert source is not None
    assert target is not None
    assert (target.log_end_offset, source.future) == (0, target)
    copy(source, target)
    moved = again.moving.exchange(KEY, *again.online)
    assert "gone" not in [key for _, key, _ in pairs(read_all(moved))]
    cleaned_to = again.online[1].cleaner.cleaned_to(KEY)
    assert cleaned_to > 0
    asyncio.run(again.close())
    assert opened(disk, config=COMPACTED).online[1].cleaner.cleaned_to(KEY) == cleaned_to


def test_a_copy_of_a_cleaned_log_goes_on_after_a_restart() -> None:
    disk, clock = SimDisk(), Clock()
    logs, log = with_compacted_log(disk, clock)
    put(log, b"k", b"old")
    clean(logs, clock)
    assert logs.online[0].cleaner.cleaned_to(KEY) > 0
    future = logs.moving.begin(KEY, logs.online[1], TOPIC)
    copy(log, future)
    asyncio.run(logs.close())
    again = opened(disk, clock=clock, config=COMPACTED)
    found = again.online[1].futures.get(KEY)
    assert found is not None
    assert found.log_end_offset == log.log_end_offset
