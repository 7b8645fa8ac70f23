"""One segment: writes that fail, and look-ups at every density."""

from __future__ import annotations

import errno

import pytest

from barnabas.log import log_segment
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.open_files import OpenFiles
from barnabas.log.partition_log import AppendOrigin
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import open_log, plain, reopen
from tests.log.story import NOW_MS, append, read_all, read_from


@pytest.mark.parametrize("interval", [0, 100, 4096])
@pytest.mark.parametrize("segment_bytes", [500, 3000, 1 << 30])
def test_every_offset_is_found_with_every_density(interval: int, segment_bytes: int) -> None:
    disk = SimDisk()
    log = open_log(disk, index_interval_bytes=interval, segment_bytes=segment_bytes)
    append(log, 40)
    for _ in range(2):
        for offset in range(80):
            record = next(iter(read_from(log, offset)))
            assert (record.offset, record.key) == (offset, b"key-%d" % offset)
        assert len(read_all(log)) == 80
        log = reopen(log, disk)


def test_short_writes_are_completed() -> None:
    disk = SimDisk(3, short_write_rate=0.7)
    log = open_log(disk, segment_bytes=700)
    append(log, 30)
    assert len(read_all(reopen(log, disk))) == 60


def test_write_that_cannot_be_cut_back_is_cut_before_the_next() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1)
    failing = True

    def fail(call: str, path: str) -> OSError | None:
        if not failing:
            return None
        if call == "pwrite":
            disk.put_through(path, b"half a batch", log.size_in_bytes)
            return OSError(errno.EIO, "gone wrong")
        return OSError(errno.EIO, "gone wrong") if call == "truncate" else None

    disk.on_call = fail
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log, 1)
    failing = False
    append(log, 1)
    assert len(read_all(reopen(log, disk, clean=False))) == 4


def test_a_whole_batch_of_a_failed_write_never_follows_a_later_one() -> None:
    disk = SimDisk()
    log = open_log(disk)
    failing = True

    def fail(call: str, path: str) -> OSError | None:
        if failing and call == "pwrite":
            disk.put_through(path, bytes(two), 0)
        return OSError(errno.EIO, "gone wrong") if failing and call in ("pwrite", "truncate") else None

    two = build_batch([(NOW_MS, b"k", b"old", ())]) + build_batch([(NOW_MS, b"k", b"old", ())], base_offset=1)
    disk.on_call = fail
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(bytearray(two[: len(two) // 2]) * 2, 0, origin=AppendOrigin.RAFT)
    failing = False
    log.append_as_leader(build_batch([(NOW_MS, b"k", b"new", ())]), 0)
    assert [record.value for record in read_all(reopen(log, disk, clean=False))] == [b"new"]


BASE = 100


def make_segment(*offsets: int, size: int = 10, disk: SimDisk | None = None) -> LogSegment:
    """A segment from offset 100 on, with a batch of one record at each offset and an index entry for nearly each."""
    disk = disk or SimDisk()
    disk.mkdir("/t")
    made = LogSegment(disk, OpenFiles(), "/t", BASE, index_interval_bytes=0, created_ms=NOW_MS)
    made.create()
    for offset in offsets:
        data = build_batch([(NOW_MS + offset, b"k", b"v" * size, ())], base_offset=offset)
        made.note_batch(made.write(data), len(data), offset, offset, NOW_MS + offset)
    return made


def good_offsets(made: LogSegment, **options: int) -> list[int]:
    return [header.base_offset for _, header, _ in made.checked_batches(**options)]


@pytest.mark.parametrize("chunk", [61, 78, 79, 80, 158, 1 << 20])
def test_batches_are_checked_whatever_a_read_returns(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_segment, "SCAN_CHUNK", chunk)
    made = make_segment(100, 101, 102, 103)
    size = made.size // 4
    whole = made.file().pread(made.size, 0)
    found = [(position, bytes(view)) for position, _, view in made.checked_batches()]
    assert found == [(at, whole[at : at + size]) for at in range(0, made.size, size)]
    assert good_offsets(made, start=2 * size) == [102, 103]
    for cut in range(made.size):
        made.file().truncate(made.size - cut)
        assert len(good_offsets(made)) == (made.size - cut) // size


def test_the_check_ends_at_offsets_that_the_segment_cannot_have() -> None:
    assert good_offsets(make_segment(100, 105, 106)) == [100, 105, 106]
    assert good_offsets(make_segment(99, 105)) == []
    assert good_offsets(make_segment(100, 100)) == [100]
    assert good_offsets(make_segment(101, 100)) == [101]
    assert good_offsets(make_segment(100, 105), end_offset=106) == [100, 105]
    assert good_offsets(make_segment(100, 105), end_offset=105) == [100]
    disk = SimDisk()
    made = make_segment(100, BASE + RELATIVE_OFFSET_MAX, disk=disk)
    assert good_offsets(made) == [100, BASE + RELATIVE_OFFSET_MAX]
    far = build_batch([(0, None, b"", ())], base_offset=BASE + RELATIVE_OFFSET_MAX + 1)
    made.write(far)
    assert good_offsets(made) == [100, BASE + RELATIVE_OFFSET_MAX]


def test_a_rebuild_makes_the_indexes_again_and_cuts_what_is_not_good() -> None:
    made = make_segment(100, 101, 102, 103)
    entries = [made.offset_index.lookup(offset) for offset in range(100, 105)]
    good = made.size
    made.write(b"rot")
    assert [header.base_offset for header, _ in made.rebuild()] == [100, 101, 102, 103]
    assert made.size == good
    assert made.cut_tail() == 3
    assert made.file().size() == good
    assert [made.offset_index.lookup(offset) for offset in range(100, 105)] == entries
    assert (made.max_timestamp, made.max_timestamp_offset) == (NOW_MS + 103, 103)
    assert made.time_index.last_entry() == (NOW_MS + 103, 103)
    assert not list(make_segment().rebuild())


def test_creation_empties_older_files() -> None:
    disk = SimDisk()
    disk.mkdir("/t")
    for suffix in ("log", "index", "timeindex"):
        disk.put(f"/t/{BASE:020d}.{suffix}", b"older bytes")
    make_segment(disk=disk)
    assert [disk.contents(path) for path in disk.paths()] == [b"", b"", b""]


def test_the_first_timestamp_is_that_of_the_first_batch() -> None:
    assert make_segment().load_first_timestamp() is None
    assert make_segment(100, 101).load_first_timestamp() == NOW_MS + 100
    for timestamp, expected in ((0, 0), (-1, None)):
        made = make_segment()
        made.write(plain(timestamp=timestamp))
        assert made.load_first_timestamp() == expected
        assert made.first_timestamp == expected


def test_a_sealed_segment_has_all_its_entries_in_files() -> None:
    disk = SimDisk()
    made = make_segment(100, 101, 102, disk=disk)
    disk.on_call = lambda call, path: OSError(errno.ENOSPC, "full") if path.endswith("txnindex") else None
    made.transaction_index.note(AbortedTransaction(5, 100, 101, 102))
    disk.on_call = None
    made.seal()
    assert made.offset_index.is_sealed
    assert made.time_index.is_sealed
    assert made.time_index.last_entry() == (NOW_MS + 102, 102)
    assert len(disk.contents(f"/t/{BASE:020d}.txnindex")) == 34
    again = LogSegment(disk, OpenFiles(), "/t", BASE, index_interval_bytes=0, created_ms=0, size=made.size)
    assert again.open_sealed(103)
    assert not again.open_sealed(102)
    assert (again.max_timestamp, again.next_offset()) == (NOW_MS + 102, 103)


def test_an_index_entry_that_names_another_batch_is_noticed() -> None:
    made = make_segment(100, 101, 102, 103)
    made.write_indexes()
    assert made.open_existing()
    position = made.locate(102)
    made.offset_index.reset()
    made.offset_index.append(101, position)
    made.offset_index.write_pending()
    assert not made.open_existing()
    assert make_segment().open_existing()


def test_a_cut_segment_goes_on_from_there() -> None:
    made = make_segment(100, 101, 102, 103)
    made.load_first_timestamp()
    end = made.locate(102)
    made.truncate_to(102)
    assert (made.size, made.file().size(), made.next_offset()) == (end, end, 102)
    assert (made.max_timestamp, made.max_timestamp_offset) == (NOW_MS + 101, 101)
    assert made.first_timestamp == NOW_MS + 100
    made.truncate_to(100)
    assert (made.size, made.next_offset(), made.first_timestamp) == (0, BASE, None)
    assert made.max_timestamp == -1


def test_a_read_ends_between_batches_within_its_bytes_if_it_can() -> None:
    made = make_segment(*range(100, 110))
    size = made.size // 10
    for max_bytes in range(4 * size):
        fits = max_bytes // size * size
        assert made.end_of_read(size, made.size, max_bytes, min_one=False) == size + fits
        assert made.end_of_read(size, made.size, max_bytes, min_one=True) == size + max(fits, size)
    assert made.end_of_read(size, 3 * size, 10**6, min_one=True) == 3 * size


def test_a_sealed_segment_can_be_cut() -> None:
    made = make_segment(100, 101, 102, 103)
    end = made.locate(102)
    made.seal()
    made.truncate_to(102)
    assert not made.offset_index.is_sealed
    assert not made.time_index.is_sealed
    assert (made.size, made.next_offset(), made.max_timestamp) == (end, 102, NOW_MS + 101)


@pytest.mark.parametrize("missing", ["index", "timeindex"])
def test_an_active_segment_without_one_of_its_indexes_must_be_rebuilt(missing: str) -> None:
    disk = SimDisk()
    made = make_segment(100, 101, disk=disk)
    made.write_indexes()
    assert made.open_existing()
    disk.remove(f"/t/{BASE:020d}.{missing}")
    assert not made.open_existing()


def test_an_empty_segment_drops_older_index_entries() -> None:
    disk = SimDisk()
    made = make_segment(disk=disk)
    disk.put(f"/t/{BASE:020d}.index", bytes((0, 0, 0, 1, 0, 0, 0, 50)))
    assert made.open_existing()
    assert (made.offset_index.entries, disk.contents(f"/t/{BASE:020d}.index")) == (0, b"")


def test_index_entries_are_written_while_the_segment_grows() -> None:
    disk = SimDisk()
    made = make_segment(100, 101, disk=disk)
    disk.on_call = lambda call, path: OSError(errno.ENOSPC, "full") if path.endswith("txnindex") else None
    made.transaction_index.note(AbortedTransaction(5, 100, 100, 101))
    disk.on_call = None
    made.write_index_entries()
    assert [len(disk.contents(f"/t/{BASE:020d}.{suffix}")) for suffix in ("index", "timeindex", "txnindex")] == [
        8,
        12,
        34,
    ]


def test_a_write_does_not_create_a_file_that_is_gone() -> None:
    disk = SimDisk()
    made = make_segment(100, disk=disk)
    made.close()
    disk.remove(made.path)
    with pytest.raises(KafkaStorageError):
        made.write(plain())
    assert not disk.exists(made.path)
