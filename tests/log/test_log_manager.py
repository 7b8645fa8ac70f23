"""One data directory: opening, identity, deletion, checkpoints, housekeeping, the clean stop."""

from __future__ import annotations

import errno
import itertools
import re
from collections.abc import Callable

import pytest

from barnabas.log.clean_shutdown_file import CLEAN_SHUTDOWN_FILE
from barnabas.log.disk import DiskLocked
from barnabas.log.errors import KafkaStorageError
from barnabas.log.housekeeping import INDEX_WRITE_INTERVAL_MS
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid
from barnabas.simulation.disk import SimDisk
from barnabas.turns import ELEMENT, READ, REPLICA
from tests.at_once import at_once, turn_by_turn
from tests.log.small_log import Clock
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, batch, manager, read_all
from tests.short_turns import set_turn

OTHER_ID = bytes(range(1, 17))
MARKER = f"{ROOT}/{CLEAN_SHUTDOWN_FILE}"


def timed(disk: SimDisk, clock: Clock, **settings: object) -> LogManager:
    opened = LogManager(disk, ROOT, now_ms=clock, **settings)  # type: ignore[arg-type]
    at_once(opened.open())
    return opened


def strays_of(opened: LogManager, is_assigned: Callable[[str, int, Uuid | None], bool]) -> list[tuple[str, int]]:
    return at_once(opened.set_strays_aside(is_assigned))


def test_directory_is_locked() -> None:
    disk = SimDisk()
    first = manager(disk)
    with pytest.raises(DiskLocked):
        manager(disk)
    at_once(first.close())
    manager(disk)


def test_files_of_a_new_partition() -> None:
    disk = SimDisk()
    log = manager(disk).get_or_create(TOPIC, 3, TOPIC_ID, CONFIG)
    assert disk.listdir(f"{ROOT}/orders-3") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]
    assert disk.contents(f"{ROOT}/orders-3/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    append(log, 1)
    assert "leader-epoch-checkpoint" in disk.listdir(f"{ROOT}/orders-3")


def test_get_or_create_is_the_same_log_with_the_newest_settings() -> None:
    opened = manager(SimDisk())
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    changed = LogConfig(retention_ms=5)
    assert opened.get_or_create(TOPIC, 0, TOPIC_ID, changed) is log
    assert log.config == changed
    assert opened.get(TOPIC, 0) is log
    assert opened.get(TOPIC, 1) is None


def test_a_name_that_leads_out_of_the_data_directory_creates_nothing() -> None:
    disk = SimDisk()
    opened = manager(disk)
    opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    before = disk.listdir(ROOT)
    with pytest.raises(AssertionError, match="Topic name is invalid"):
        opened.get_or_create("../../evil/x", 0, TOPIC_ID, CONFIG)
    assert not disk.exists(f"{ROOT}/../../evil/x-0")
    assert disk.listdir(ROOT) == before


def test_clean_stop_opens_lazily_and_recovers_nothing() -> None:
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(3):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 5)
    at_once(opened.close())
    assert disk.contents(MARKER) == b'{"version":0,"brokerEpoch":-1}'
    again = manager(disk)
    assert (again.had_clean_shutdown, again.is_recovered) == (True, True)
    assert not disk.exists(MARKER)
    assert len(again.logs) == 0
    assert again.broker_epoch == -1
    again.broker_epoch = 42
    log = again.get(TOPIC, 1)
    assert log is not None
    assert log.recovery_point == log.log_end_offset == 10
    # Closing again without opening the others keeps their checkpoints.
    at_once(again.close())
    third = manager(disk)
    # An owner that never registers leaves the epoch that it found.
    assert third.broker_epoch == 42
    for partition in range(3):
        found = third.get(TOPIC, partition)
        assert found is not None
        assert (found.recovery_point, found.high_watermark) == (10, 0)


def test_unclean_stop_recovers_every_log_at_once() -> None:
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(3):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 5)
    disk.kill()
    again = manager(disk)
    assert (again.had_clean_shutdown, again.is_recovered) == (False, True)
    assert sorted(again.logs) == [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
    opened = manager(disk.copy())
    assert len(opened.logs) == 3


def test_unclean_close_leaves_no_marker() -> None:
    disk = SimDisk()
    opened = manager(disk)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 5)
    at_once(opened.close(clean=False))
    assert not disk.exists(MARKER)
    assert disk.open_handles == 0


def test_log_that_cannot_be_closed_prevents_the_marker() -> None:
    disk = SimDisk()
    opened = manager(disk)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 5)
    disk.on_call = lambda call, path: OSError(errno.EIO, "lost") if call == "sync" and path.endswith(".log") else None
    at_once(opened.close())
    assert not disk.exists(MARKER)


def test_few_logs_are_closed_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = manager(SimDisk())
    logs = [opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG) for partition in range(5)]
    closed = 0
    close = PartitionLog.close

    def counted(log: PartitionLog, *, clean: bool = True) -> None:
        nonlocal closed
        closed += 1
        close(log, clean=clean)

    monkeypatch.setattr(PartitionLog, "close", counted)
    set_turn(monkeypatch, 2 * READ)
    closed_then = []
    for _ in turn_by_turn(opened.close()):
        closed_then.append(closed)
        with pytest.raises(KafkaStorageError):
            append(logs[0], 1)
    assert closed_then[:3] == [2, 4, 5]


def closed(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[LogManager], None], at: int) -> tuple[SimDisk, int]:
    """Close five logs of a batch each, let something happen in one turn, and cut the power; return how many turns there were."""
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(5):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, LogConfig()), 1)
    turn = 0
    with monkeypatch.context() as small:
        set_turn(small, ELEMENT)
        for turn, _ in enumerate(turn_by_turn(opened.close()), start=1):
            if turn == at:
                meanwhile(opened)
    disk.crash()
    return disk, turn


def test_a_log_that_opens_while_the_others_are_closed_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_late(opened: LogManager) -> None:
        append(opened.get_or_create(TOPIC, 5, TOPIC_ID, LogConfig()), 3)

    _, turns = closed(monkeypatch, open_late, 0)
    assert turns > 15, "the checkpoints take turns too"
    for at in range(1, turns + 1):
        disk, _ = closed(monkeypatch, open_late, at)
        again = manager(disk)
        assert again.had_clean_shutdown
        ends = [log.log_end_offset for partition in range(6) if (log := again.get(TOPIC, partition)) is not None]
        assert ends == [2, 2, 2, 2, 2, 6], at


def test_a_clean_stop_has_written_its_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens meanwhile may end their write: without them a directory must not be marked as clean."""

    def create_and_delete(opened: LogManager) -> None:
        opened.get_or_create(TOPIC, 9, TOPIC_ID, LogConfig())
        opened.delete(TOPIC, 9)

    lines = b"".join(b"\norders %d 2" % partition for partition in range(5))
    _, turns = closed(monkeypatch, create_and_delete, 0)
    for at in range(1, turns + 1):
        disk, _ = closed(monkeypatch, create_and_delete, at)
        assert disk.exists(MARKER)
        assert disk.contents(f"{ROOT}/recovery-point-offset-checkpoint") == b"0\n5" + lines + b"\n"


def test_few_logs_are_listed_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(5):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 1)
    at_once(opened.close())
    again = LogManager(disk, ROOT, now_ms=Clock())
    set_turn(monkeypatch, 2 * REPLICA)

    def unopened() -> int:
        return int(repr(again).partition("unopened=")[2].rstrip(">"))

    listed = [0, *(unopened() for _ in turn_by_turn(again.open())), unopened()]
    assert listed[-1] == 5
    assert max(after - before for before, after in itertools.pairwise(listed)) == 2


def test_quorum_log_and_foreign_names_are_left_alone() -> None:
    disk = SimDisk()
    for name in ("__cluster_metadata-0", "lost+found", "orders-0.abc-stray", "notes"):
        disk.mkdir(f"{ROOT}/{name}")
        disk.put(f"{ROOT}/{name}/00000000000000000000.log", b"")
    disk.put(f"{ROOT}/bootstrap.checkpoint", b"x")
    opened = manager(disk)
    assert len(opened.logs) == 0
    assert strays_of(opened, lambda *_: False) == []
    assert disk.exists(f"{ROOT}/__cluster_metadata-0/00000000000000000000.log")


def test_delete_renames_now_and_removes_later() -> None:
    disk = SimDisk()
    clock = Clock()
    opened = timed(disk, clock)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(file_delete_delay_ms=500))
    append(log, 3)
    begun = log.read(0, 1000, max_offset=6)
    before = begun.read()
    opened.delete(TOPIC, 0)
    assert opened.get(TOPIC, 0) is None
    [name] = [name for name in disk.listdir(ROOT) if name.endswith("-delete")]
    assert name.startswith("orders-0.")
    assert begun.read() == before
    with pytest.raises(KafkaStorageError):
        append(log, 1)
    new = opened.get_or_create(TOPIC, 0, OTHER_ID, CONFIG)
    assert new.log_end_offset == 0
    clock.ms += 499
    at_once(opened.housekeeping())
    assert disk.exists(f"{ROOT}/{name}")
    clock.ms += 1
    at_once(opened.housekeeping())
    assert not disk.exists(f"{ROOT}/{name}")
    opened.delete(TOPIC, 99)


def test_deleted_directory_is_removed_by_the_next_start() -> None:
    disk = SimDisk()
    opened = manager(disk)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 3)
    opened.delete(TOPIC, 0)
    disk.kill()
    again = manager(disk)
    at_once(again.housekeeping())
    assert not [name for name in disk.listdir(ROOT) if "orders" in name]


def test_long_topic_names_can_be_deleted() -> None:
    disk = SimDisk()
    opened = manager(disk)
    opened.get_or_create("t" * 249, 12345, TOPIC_ID, CONFIG)
    opened.delete("t" * 249, 12345)
    [name] = [name for name in disk.listdir(ROOT) if name.startswith("t")]
    # The partition stays readable: Apache Kafka does not start with a directory that it cannot parse.
    assert (len(name), name[-46:-39], name[-7:]) == (255, "-12345.", "-delete")


def test_former_topic_of_the_same_name_is_set_aside() -> None:
    disk = SimDisk()
    opened = manager(disk)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 3)
    at_once(opened.checkpoint())
    new = opened.get_or_create(TOPIC, 0, OTHER_ID, CONFIG)
    assert new.log_end_offset == 0
    assert [name for name in disk.listdir(ROOT) if name.endswith("-stray")]
    # The old log's offsets are not there to be taken for the new one's.
    assert b"orders 0" not in disk.contents(f"{ROOT}/recovery-point-offset-checkpoint")
    append(new, 1)
    disk.kill()
    assert manager(disk).get_or_create(TOPIC, 0, OTHER_ID, CONFIG).log_end_offset == 2


def test_a_directory_that_lost_its_topic_id_is_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    """Its topic may be deleted, and another one of the name be there; nothing of it was ever synced."""
    disk = SimDisk()
    append(manager(disk).get_or_create(TOPIC, 0, TOPIC_ID, CONFIG), 2)
    disk.kill()
    disk.remove(f"{ROOT}/orders-0/partition.metadata")
    assert manager(disk).get_or_create(TOPIC, 0, OTHER_ID, CONFIG).log_end_offset == 0
    [stray] = [name for name in disk.listdir(ROOT) if name.endswith("-stray")]
    assert disk.file_size(f"{ROOT}/{stray}/00000000000000000000.log") > 0
    assert "orders-0 has lost its topic id; it is renamed to a stray directory" in caplog.text


def test_what_a_flush_has_synced_keeps_its_topic_id() -> None:
    disk = SimDisk()
    log = manager(disk).get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 2)
    log.flush()
    disk.crash()
    assert manager(disk).get_or_create(TOPIC, 0, TOPIC_ID, CONFIG).log_end_offset == 4


def test_logs_that_are_not_assigned_are_set_aside_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(3):
        append(opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG), 2)
    at_once(opened.close())
    again = manager(disk)
    again.get(TOPIC, 0)
    seen = []

    def is_assigned(topic: str, partition: int, topic_id: bytes | None) -> bool:
        seen.append((topic, partition, topic_id))
        return partition == 1

    assert sorted(strays_of(again, is_assigned)) == [(TOPIC, 0), (TOPIC, 2)]
    assert sorted(seen) == [(TOPIC, 0, TOPIC_ID), (TOPIC, 1, TOPIC_ID), (TOPIC, 2, TOPIC_ID)]
    assert again.get(TOPIC, 1) is not None
    assert again.get(TOPIC, 2) is None
    strays = [name for name in disk.listdir(ROOT) if name.endswith("-stray")]
    assert [re.sub("[0-9a-f]{32}", "id", name) for name in strays] == ["orders-0.id-stray", "orders-2.id-stray"]
    [line] = [record.getMessage() for record in caplog.records if "-stray" in record.getMessage()]
    assert all(name in line for name in strays)
    # Neither housekeeping nor another start touches them.
    at_once(again.housekeeping())
    at_once(again.close())
    third = manager(disk)
    at_once(third.housekeeping())
    assert strays_of(third, lambda *_: True) == []
    assert len(disk.contents(f"{ROOT}/{strays[0]}/{0:020d}.log")) == 2 * len(batch(0))
    # An operator puts one back.
    at_once(third.close())
    disk.rename(f"{ROOT}/{strays[0]}", f"{ROOT}/orders-0")
    log = manager(disk).get(TOPIC, 0)
    assert log is not None
    assert len(read_all(log)) == 4


def test_many_strays_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    opened = manager(SimDisk())
    for partition in range(8):
        opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG)
    assert len(strays_of(opened, lambda *_: False)) == 8
    assert strays_of(opened, lambda *_: False) == []
    [line] = [record.getMessage() for record in caplog.records if "-stray" in record.getMessage()]
    assert line.endswith("-stray and 3 more")


def test_housekeeping_flushes_after_flush_ms() -> None:
    clock = Clock()
    disk = SimDisk()
    opened = timed(disk, clock)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(flush_ms=100))
    append(log, 2)
    clock.ms += 99
    at_once(opened.housekeeping())
    assert log.recovery_point == 0
    clock.ms += 1
    at_once(opened.housekeeping())
    assert log.recovery_point == 4
    disk.crash()
    again = manager(disk).get(TOPIC, 0)
    assert again is not None
    assert again.log_end_offset == 4


def test_housekeeping_shows_index_entries_to_readers_of_the_files() -> None:
    clock = Clock()
    disk = SimDisk()
    opened = timed(disk, clock)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(index_interval_bytes=1))
    at_once(opened.housekeeping())
    append(log, 3)
    index = f"{ROOT}/{TOPIC}-0/00000000000000000000.index"
    assert disk.contents(index) == b""
    clock.ms += INDEX_WRITE_INTERVAL_MS
    at_once(opened.housekeeping())
    entries = disk.contents(index)
    assert len(entries) == 16
    append(log, 1)
    at_once(opened.close())
    assert disk.contents(index)[:16] == entries
    assert len(disk.contents(index)) == 24


def test_housekeeping_applies_retention_to_logs_nobody_has_asked_for() -> None:
    clock = Clock()
    disk = SimDisk(now_ms=clock)
    config = LogConfig(retention_ms=1000, segment_bytes=300)
    opened = timed(disk, clock)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, config)
    append(log, 6)
    log.high_watermark = 12
    at_once(opened.close())
    again = timed(disk, clock, config_for=lambda _: config, retention_check_interval_ms=5000)
    clock.ms += 4999
    at_once(again.housekeeping())
    assert len(again.logs) == 0
    clock.ms += 1
    at_once(again.housekeeping())
    found = again.get(TOPIC, 0)
    assert found is not None
    assert found.log_start_offset == found.log_end_offset == 12


def test_housekeeping_forgets_silent_producers_at_an_interval_of_its_own() -> None:
    clock = Clock()
    disk = SimDisk(now_ms=clock)
    opened = timed(disk, clock, producer_expiration_check_interval_ms=500, retention_check_interval_ms=10**9)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(producer_id_expiration_ms=1000))
    append(log, 1)
    clock.ms += 999
    at_once(opened.housekeeping())
    assert len(log.producers()) == 1
    clock.ms += 1
    at_once(opened.housekeeping())
    assert len(log.producers()) == 1, "looked again before the interval was over"
    clock.ms += 499
    at_once(opened.housekeeping())
    assert log.producers() == []


def test_housekeeping_writes_checkpoints_and_survives_a_failing_disk() -> None:
    clock = Clock()
    disk = SimDisk()
    opened = timed(disk, clock, checkpoint_interval_ms=1000)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig(flush_ms=1)), 2)
    clock.ms += 1000
    disk.on_call = lambda call, path: OSError(errno.EIO, "lost")
    at_once(opened.housekeeping())
    disk.on_call = None
    clock.ms += 1000
    at_once(opened.housekeeping())
    assert disk.exists(f"{ROOT}/recovery-point-offset-checkpoint")


def test_high_watermarks_have_a_shorter_interval_of_their_own() -> None:
    clock = Clock()
    disk = SimDisk()
    opened = timed(disk, clock, checkpoint_interval_ms=60_000, high_watermark_interval_ms=5_000)
    append(opened.get_or_create(TOPIC, 0, TOPIC_ID, LogConfig()), 2)
    for ms, exists in ((4_999, False), (1, True)):
        clock.ms += ms
        at_once(opened.housekeeping())
        assert disk.exists(f"{ROOT}/replication-offset-checkpoint") is exists
    assert not disk.exists(f"{ROOT}/recovery-point-offset-checkpoint")


def test_syncs_run_elsewhere_and_report_back() -> None:
    waiting = []

    class Done:
        def __init__(self, error: BaseException | None = None) -> None:
            self.error = error

        def add_done_callback(self, callback: object) -> None:
            waiting.append((self, callback))

        def cancelled(self) -> bool:
            return False

        def exception(self) -> BaseException | None:
            return self.error

    works = []

    def run(work: object) -> Done:
        works.append(work)
        return Done()

    disk = SimDisk()
    opened = manager(disk, run_blocking=run)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 12)
    assert log.segment_count > 1
    assert log.recovery_point == 0
    for work in works:
        work()
    for future, callback in waiting:
        callback(future)
    assert 0 < log.recovery_point < log.log_end_offset
    # A sync that ends after a truncation says nothing about what was written since.
    append(log, 12)
    log.truncate_to(0)
    before = log.recovery_point
    for future, callback in waiting:
        callback(future)
    assert log.recovery_point == before == 0


def test_failing_start_gives_the_lock_back_when_it_is_closed() -> None:
    disk = SimDisk()
    at_once(manager(disk).close())
    disk.on_call = lambda call, path: OSError(errno.EIO, "lost") if call == "listdir" else None
    failing = LogManager(disk, ROOT, now_ms=Clock())
    with pytest.raises(KafkaStorageError):
        at_once(failing.open())
    disk.on_call = None
    with pytest.raises(DiskLocked):
        manager(disk)
    at_once(failing.close(clean=failing.had_clean_shutdown))
    manager(disk)


def test_a_start_that_ends_before_all_logs_are_listed_leaves_their_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    opened = manager(disk)
    for partition in range(3):
        log = opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG)
        append(log, 6)
        log.high_watermark = 12
        log.delete_records_before(7)
    at_once(opened.close())
    turns = 0
    with monkeypatch.context() as small:
        set_turn(small, REPLICA)
        for ends_after in range(1, 100):
            interrupted = LogManager(disk, ROOT, now_ms=Clock())
            turns = sum(1 for _ in zip(range(ends_after), turn_by_turn(interrupted.open()), strict=False))
            at_once(interrupted.close(clean=interrupted.had_clean_shutdown))
            if turns < ends_after:
                break
    assert turns > 3
    again = manager(disk)
    assert again.had_clean_shutdown
    assert [again.get(TOPIC, partition).log_start_offset for partition in range(3)] == [7, 7, 7]  # type: ignore[union-attr]


def test_thousands_of_partitions_share_a_few_open_files() -> None:
    disk = SimDisk()
    disk.max_open_files = lambda: 16  # type: ignore[method-assign]
    opened = manager(disk)
    logs = [opened.get_or_create(TOPIC, partition, TOPIC_ID, CONFIG) for partition in range(200)]
    for log in logs:
        append(log, 2)
    assert disk.open_handles <= 17
    for log in logs:
        assert len(read_all(log)) == 4
    assert disk.open_handles <= 17
    at_once(opened.close())
    assert disk.open_handles == 0


def test_a_disk_that_takes_no_writes_is_said_once_and_its_return_too(caplog: pytest.LogCaptureFixture) -> None:
    disk, clock = SimDisk(), Clock()
    opened = timed(disk, clock)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    caplog.set_level("INFO")

    def after_seconds(seconds: int) -> bool:
        append(log, 1)
        log.high_watermark = log.log_end_offset
        clock.ms += seconds * 1000
        at_once(opened.housekeeping())
        return opened.failure.is_offline

    assert not after_seconds(6)
    disk.on_call = lambda call, path: OSError(errno.ENOSPC, "full") if "replication-offset" in path else None
    assert [after_seconds(6) for _ in range(3)] == [True, True, True]
    disk.on_call = None
    assert not after_seconds(6)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"{ROOT} takes no writes",
        f"{ROOT} takes writes again",
    ]
