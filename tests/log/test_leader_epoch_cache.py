"""The leader epochs of a log."""

from __future__ import annotations

from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.simulation.disk import SimDisk

PATH = "/t/leader-epoch-checkpoint"


def cache(*entries: tuple[int, int]) -> tuple[SimDisk, LeaderEpochCache]:
    disk = SimDisk()
    disk.mkdir("/t")
    made = LeaderEpochCache(disk, PATH)
    for epoch, offset in entries:
        made.assign(epoch, offset)
    return disk, made


def test_golden_file() -> None:
    disk, made = cache((0, 0), (3, 1200), (4, 1800))
    assert disk.contents(PATH) == b"0\n3\n0 0\n3 1200\n4 1800\n"
    again = LeaderEpochCache(disk, PATH)
    assert again.load()
    assert again.entries() == made.entries() == [(0, 0), (3, 1200), (4, 1800)]


def test_file_that_is_not_whole_or_not_ascending_is_not_believed() -> None:
    disk, made = cache((0, 0), (3, 1200))
    whole = disk.contents(PATH)
    for data in [*(whole[:size] for size in range(len(whole))), b"0\n2\n3 0\n0 5\n", b"0\n2\n0 9\n1 5\n", b"0\n1\n0\n"]:
        disk.put(PATH, data)
        assert not made.load()
        assert made.entries() == []


def test_assign_drops_what_it_contradicts() -> None:
    _, made = cache((1, 0), (2, 10), (3, 20))
    assert not made.assign(3, 25)
    assert made.assign(4, 15)
    assert made.entries() == [(1, 0), (2, 10), (4, 15)]
    assert made.assign(2, 12)
    assert made.entries() == [(1, 0), (2, 12)]
    assert made.assign(5, 12)
    assert made.entries() == [(1, 0), (5, 12)]


def test_end_offsets() -> None:
    _, made = cache((1, 5), (3, 20))
    assert [made.end_offset_for(epoch, 30) for epoch in (-1, 0, 1, 2, 3, 4)] == [
        (-1, -1),
        (0, 5),
        (1, 20),
        (1, 20),
        (3, 30),
        (-1, -1),
    ]
    assert [made.epoch_for_offset(offset) for offset in (4, 5, 19, 20)] == [-1, 1, 1, 3]
    assert cache()[1].end_offset_for(0, 30) == (-1, -1)


def test_truncation() -> None:
    _, made = cache((1, 5), (3, 20), (4, 40))
    made.truncate_from_end(40)
    assert made.entries() == [(1, 5), (3, 20)]
    made.truncate_from_start(10)
    assert made.entries() == [(1, 10), (3, 20)]
    made.truncate_from_start(20)
    assert made.entries() == [(3, 20)]
    made.truncate_from_start(25)
    assert made.entries() == [(3, 25)]
    made.truncate_from_end(0)
    assert made.entries() == []
    assert made.latest_epoch == -1


def written(disk: SimDisk) -> list[tuple[int, int]]:
    again = LeaderEpochCache(disk, PATH)
    assert again.load()
    return again.entries()


def test_every_change_is_written_unless_the_caller_writes_later() -> None:
    disk, made = cache((1, 5), (3, 20), (4, 40))
    made.truncate_from_end(40)
    assert written(disk) == [(1, 5), (3, 20)]
    made.truncate_from_start(10)
    assert written(disk) == [(1, 10), (3, 20)]
    made.assign(5, 50, write=False)
    made.truncate_from_end(50, write=False)
    made.truncate_from_start(20, write=False)
    made.clear(write=False)
    assert written(disk) == [(1, 10), (3, 20)]
    made.assign(6, 60)
    assert written(disk) == [(6, 60)]
    made.clear()
    assert written(disk) == []


def test_a_truncation_that_changes_nothing_writes_nothing() -> None:
    disk, made = cache((1, 5), (3, 20))
    disk.fail_call(1)
    made.truncate_from_end(21)
    made.truncate_from_start(5)
    made.truncate_from_start(4)
    assert not made.assign(3, 99)
    assert made.entries() == [(1, 5), (3, 20)]


def test_the_latest_epoch_follows_every_change() -> None:
    disk, made = cache((1, 5), (3, 20), (4, 40))
    again = LeaderEpochCache(disk, PATH)
    assert again.latest_epoch == -1
    again.load()
    assert again.latest_epoch == 4
    again.truncate_from_end(40)
    assert again.latest_epoch == 3
    again.assign(7, 50)
    assert again.latest_epoch == 7
    again.truncate_from_start(60)
    assert again.latest_epoch == 7
    again.clear()
    assert again.latest_epoch == -1
    disk.put(PATH, b"rot")
    assert not made.load()
    assert made.latest_epoch == -1


def test_two_epochs_may_start_at_one_offset_in_the_file_but_an_epoch_never_twice() -> None:
    disk, made = cache()
    disk.put(PATH, b"0\n2\n1 5\n2 5\n")
    assert made.load()
    disk.put(PATH, b"0\n2\n1 5\n1 9\n")
    assert not made.load()
