"""LocalLog: files move with the list of segments, and reads that have begun finish."""

from __future__ import annotations

from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock, open_log, plain


def test_a_slice_of_a_deleted_segment_can_still_be_read() -> None:
    clock = Clock()
    disk = SimDisk(now_ms=clock)
    log = open_log(disk, clock=clock, segment_bytes=len(plain()), retention_bytes=1, file_delete_delay_ms=500)
    for _ in range(3):
        log.append_as_leader(plain(), 0)
    log.high_watermark = 3
    begun = log.read(0, 1000, max_offset=3)
    expected = begun.read()
    assert log.apply_retention() > 0
    assert not disk.exists("/data/orders-0/00000000000000000000.log")
    assert begun.read() == expected
    clock.ms += 500
    log.remove_deleted_files()
    assert not [path for path in disk.paths() if ".deleted" in path]


def test_the_directory_is_followed_when_it_is_renamed() -> None:
    disk = SimDisk()
    log = open_log(disk)
    log.append_as_leader(plain(), 0)
    log.high_watermark = 1
    begun = log.read(0, 1000, max_offset=1)
    expected = begun.read()
    disk.rename("/data/orders-0", "/data/orders-0.0-delete")
    log.directory_renamed("/data/orders-0.0-delete")
    assert log.directory == "/data/orders-0.0-delete"
    assert begun.read() == expected


def test_a_cut_below_the_first_segment_starts_anew() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=len(plain()))
    for _ in range(3):
        log.append_as_leader(plain(), 0)
    log.truncate_fully_and_start_at(10)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (10, 10, 1)
    assert [path.rpartition("/")[2] for path in disk.paths() if path.endswith(".log")] == ["00000000000000000010.log"]


def test_a_closed_log_has_no_open_file() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=len(plain()))
    for offset in range(3):
        log.append_as_leader(plain(), 0)
        log.read(offset, 1000, max_offset=offset + 1).read()
    assert disk.open_handles > 0
    log.close()
    assert disk.open_handles == 0


def test_the_flush_after_a_deletion_syncs_the_directory_once() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=len(plain()), retention_bytes=1)
    for _ in range(3):
        log.append_as_leader(plain(), 0)
    log.high_watermark = 3
    log.flush()
    synced: list[str] = []
    disk.on_call = lambda call, path: synced.append(path) if call == "sync_dir" else None
    log.flush()
    assert synced == []
    assert log.apply_retention() > 0
    log.flush()
    log.flush()
    assert synced == ["/data/orders-0", "/data"]


def test_a_read_at_its_limit_is_empty() -> None:
    log = open_log()
    log.append_as_leader(plain(2), 0)
    assert log.read(0, 1000, max_offset=0).size == 0
    assert log.read(2, 1000, max_offset=2).size == 0
    assert log.read(1, 1000, max_offset=2).size == len(plain(2))
