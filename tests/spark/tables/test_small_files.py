"""Which files a compaction puts together."""

from __future__ import annotations

from barnabas.spark.tables.small_files import SmallFile, groups, is_small


def grouped(*sizes: int, partition: int = 0, target: int = 1000) -> list[list[int]]:
    return [sorted(each) for each in groups((SmallFile(partition, size, str(size), size) for size in sizes), target)]


def test_a_file_that_nearly_has_the_size_is_not_small() -> None:
    assert [is_small(size, 1000) for size in (749, 750)] == [True, False]


def test_files_make_one_of_the_wanted_size() -> None:
    assert sorted(map(len, grouped(300, 300, 300, 300, 300))) == [2, 3]
    assert grouped(10, 10, 10) == [[10, 10, 10]]
    assert grouped(10) == []


def test_partitions_stay_apart() -> None:
    files = [
        SmallFile(partition, 10, f"{partition}-{n}", (partition, n))
        for partition in (0, 1, 2)
        for n in range(partition)
    ]
    assert list(groups(files, 1000)) == [[(2, 0), (2, 1)]]


def test_a_large_file_waits_for_half_of_its_size() -> None:
    assert grouped(500, 100, 100) == [[100, 100]]
    assert grouped(500, 130, 120) == [[120, 130, 500]]


def test_rows_are_copied_a_few_times_only() -> None:
    """A compaction after each 10 files of 1, a thousand times: files stay few, and a row is copied some seven times."""
    files: list[int] = []
    copied = 0
    for _ in range(1000):
        files += [1] * 10
        for group in grouped(*files, target=1_000_000):
            copied += sum(group)
            for each in group:
                files.remove(each)
            files.append(sum(group))
    assert sum(files) == 10_000
    assert len(files) < 20
    assert copied < 10_000 * 8
