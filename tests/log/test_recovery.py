"""Opening a directory: leftovers, interrupted swaps, gaps that compaction made."""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from tests.log.story import NOW_MS, append, read_all
from tests.simulation.disk import SimDisk

DIRECTORY = "/data/orders-0"
CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)


def open_log(disk: SimDisk, *, clean: bool = False, recovery_point: int = 0) -> PartitionLog:
    return PartitionLog(disk, DIRECTORY, CONFIG, now_ms=lambda: NOW_MS, clean=clean, recovery_point=recovery_point)


def written(batches: int = 8) -> SimDisk:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batches)
    log.close()
    return disk.copy()


def at(offset: int, *, count: int = 1) -> bytearray:
    return build_batch([(NOW_MS, b"k", b"v", ())] * count, base_offset=offset, leader_epoch=0)


def test_leftovers_are_removed() -> None:
    disk = written()
    names = disk.listdir(DIRECTORY)
    for name in ("00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp", "00000000000000000999.index"):
        disk.put(f"{DIRECTORY}/{name}", b"x")
    assert len(read_all(open_log(disk, clean=True))) == 16
    assert disk.listdir(DIRECTORY) == names


def test_foreign_files_are_left_alone() -> None:
    disk = written()
    disk.put(f"{DIRECTORY}/notes.txt", b"x")
    open_log(disk)
    assert disk.contents(f"{DIRECTORY}/notes.txt") == b"x"


def test_finished_replacement_is_put_in_place() -> None:
    disk = written()
    bases = [int(name[:20]) for name in disk.listdir(DIRECTORY) if name.endswith(".log")]
    assert len(bases) == 4
    # Compaction has merged the first two segments into one, of which three records are left.
    merged = at(1) + at(4) + at(bases[2] - 1)
    disk.put(f"{DIRECTORY}/{0:020d}.log.swap", bytes(merged))
    # The second segment has been renamed already when the crash came.
    disk.rename(f"{DIRECTORY}/{bases[1]:020d}.log", f"{DIRECTORY}/{bases[1]:020d}.log.deleted")
    for clean in (True, False):
        log = open_log(disk.copy(), clean=clean)
        assert [r.offset for r in read_all(log)] == [1, 4, bases[2] - 1, *range(bases[2], 16)]


def test_unfinished_replacement_is_undone() -> None:
    disk = written()
    disk.put(f"{DIRECTORY}/{0:020d}.log.cleaned", bytes(at(1)))
    disk.put(f"{DIRECTORY}/{4:020d}.log.swap", bytes(at(4)))
    log = open_log(disk)
    assert [r.offset for r in read_all(log)] == list(range(16))
    assert not [name for name in disk.listdir(DIRECTORY) if name.endswith((".cleaned", ".swap"))]


def test_holes_of_compaction_are_kept() -> None:
    disk = SimDisk()
    disk.mkdir(DIRECTORY)
    disk.put(f"{DIRECTORY}/{0:020d}.log", bytes(at(0) + at(7) + at(9)))
    disk.put(f"{DIRECTORY}/{20:020d}.log", bytes(at(20) + at(21)))
    for clean in (True, False):
        log = open_log(disk.copy(), clean=clean)
        assert [r.offset for r in read_all(log)] == [0, 7, 9, 20, 21]
        assert [r.offset for r in read_all(log, max_bytes=1)] == [0, 7, 9, 20, 21]
        # A read inside a hole goes on behind it.
        for offset, found in ((1, 7), (8, 9), (10, 20), (19, 20)):
            data = log.read(offset, 1, max_offset=22).read()
            assert next(iter_batches(data))[1].base_offset == found


def test_cut_between_two_batches_of_an_unflushed_segment_removes_its_successors() -> None:
    disk = written()
    path = f"{DIRECTORY}/{0:020d}.log"
    first = disk.contents(path)
    [(_, header), *_] = iter_batches(first)
    disk.put(path, first[: header.size])
    log = open_log(disk.copy())
    assert log.log_end_offset == 2
    assert log.segment_count == 1
    # In the flushed part the later segments are kept, behind a hole.
    log = open_log(disk.copy(), recovery_point=16)
    assert log.log_end_offset == 16


def test_empty_directory_gets_a_first_segment_at_the_log_start() -> None:
    disk = SimDisk()
    log = PartitionLog(disk, DIRECTORY, CONFIG, now_ms=lambda: NOW_MS, log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    assert disk.listdir(DIRECTORY) == [f"{40:020d}.{kind}" for kind in ("index", "log", "timeindex")]
