"""Opening a directory: leftovers, interrupted swaps, gaps that compaction made."""

from __future__ import annotations

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from barnabas.simulation.disk import SimDisk
from tests.log.story import NOW_MS, append, read_all

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


def of_epochs(*epochs: int) -> bytes:
    """Batches of one record each, all of one size, with these leader epochs."""
    return b"".join(
        build_batch([(NOW_MS, b"k", b"v", ())], base_offset=offset, leader_epoch=epoch)
        for offset, epoch in enumerate(epochs)
    )


def stored(*segments: tuple[int, bytes]) -> SimDisk:
    disk = SimDisk()
    disk.mkdir(DIRECTORY)
    for base, data in segments:
        disk.put(f"{DIRECTORY}/{base:020d}.log", data)
    return disk


def test_an_older_epoch_behind_a_newer_one_is_cut_off() -> None:
    log = open_log(stored((0, of_epochs(1, 1, 3, 3, 1, 1))))
    assert (log.log_end_offset, log.epoch_entries) == (4, [(1, 0), (3, 2)])
    assert log.recovered.bytes_cut == 2 * len(of_epochs(1))


def test_an_older_epoch_at_the_start_of_a_segment_is_cut_off_with_all_that_follows() -> None:
    data, size = of_epochs(1, 3, 1, 4), len(of_epochs(1))
    disk = stored((0, data[: 2 * size]), (2, data[2 * size : 3 * size]), (3, data[3 * size :]))
    for recovery_point in (0, 2):
        log = open_log(disk.copy(), recovery_point=recovery_point)
        assert (log.log_end_offset, log.segment_count, log.epoch_entries) == (2, 2, [(1, 0), (3, 1)])


def test_an_older_epoch_in_the_flushed_part_is_kept() -> None:
    """What was flushed stays: no truncation before it can have been undone."""
    log = open_log(stored((0, of_epochs(3, 1, 1, 0))), recovery_point=3)
    assert log.log_end_offset == 3


def test_epochs_that_the_batches_contradict_are_read_from_the_batches() -> None:
    """The file is from before a truncation, of which the batches know."""
    disk = stored((0, of_epochs(1, 1, 2, 4)))
    disk.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n2\n1 0\n3 2\n")
    assert open_log(disk).epoch_entries == [(1, 0), (2, 2), (4, 3)]


def test_epochs_of_flushed_segments_are_found_though_the_file_ends_before_them() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1, leader_epoch=1)
    append(log, 7, leader_epoch=2)
    log.close()
    assert log.segment_count == 4
    disk.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n1\n1 0\n")
    assert open_log(disk, recovery_point=16).epoch_entries == [(1, 0), (2, 2)]


def test_epochs_below_the_log_start_or_without_batches_do_not_contradict() -> None:
    batches = of_epochs(1, 2, 3, 4, 4)
    size = len(batches) // 5
    # Compaction has removed the batch of epoch 3.
    disk = stored((0, batches[: 2 * size] + batches[3 * size :]))
    epochs = b"0\n3\n2 1\n3 2\n4 3\n"
    disk.put(f"{DIRECTORY}/leader-epoch-checkpoint", epochs)
    log = PartitionLog(disk, DIRECTORY, CONFIG, now_ms=lambda: NOW_MS, log_start_offset=1)
    assert log.epoch_entries == [(2, 1), (3, 2), (4, 3)]
    assert disk.contents(f"{DIRECTORY}/leader-epoch-checkpoint") == epochs


WHOLE = bytes(at(16))


@pytest.mark.parametrize(
    ("tail", "is_damaged"),
    [
        (b"", False),
        (WHOLE, False),
        (WHOLE[:1], False),
        (WHOLE[:20], False),
        (WHOLE[:-1], False),
        (WHOLE + bytes(at(17))[:-1], False),  # of a write of several batches
        (WHOLE[:-1] + b"?", True),  # whole, and wrong
        (bytes(40), True),  # a page that the system has lost
        (bytes(len(WHOLE)), True),
        (WHOLE[:16] + b"?" + WHOLE[17:-1], True),  # another format
        (bytes(at(9))[:-1], True),  # an older batch
        (bytes(at(18)), True),  # behind a hole
    ],
)
def test_a_torn_write_is_told_from_damage(tail: bytes, is_damaged: bool) -> None:
    disk = written()
    path = f"{DIRECTORY}/{max(name for name in disk.listdir(DIRECTORY) if name.endswith('.log'))}"
    disk.put(path, disk.contents(path) + tail)
    assert open_log(disk).recovered.is_damaged == is_damaged


def test_a_cut_before_the_last_segment_is_damage() -> None:
    disk = written()
    first = f"{DIRECTORY}/{0:020d}.log"
    disk.put(first, disk.contents(first)[:-1])
    log = open_log(disk)
    assert log.recovered.is_damaged
    assert log.log_end_offset < 16


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("compact", "cleaned_to", "left"), [(True, 0, 2), (False, 18, 2), (False, 17, 1), (False, 0, 1)]
)
def test_the_last_batch_behind_a_hole_of_a_log_that_was_read_from_a_cleaned_one(
    clean: bool, compact: bool, cleaned_to: int, left: int
) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact" if compact else "delete"}))
    disk = SimDisk()
    log = PartitionLog(disk, DIRECTORY, config, now_ms=lambda: NOW_MS)
    for base in (0, 18):
        log.append_as_follower(bytes(at(base)), 0)
    log.close(clean=clean)
    again = PartitionLog(disk, DIRECTORY, config, now_ms=lambda: NOW_MS, clean=clean, cleaned_to=cleaned_to)
    assert [record.offset for record in read_all(again)] == [0, 18][:left]
