"""The index of aborted transactions: what is in the file, what a disk that refuses leaves, what is cut."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.append_checks import AppendOrigin
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.simulation.disk import SimDisk

PATH = "/logs/00000000000000000000.txnindex"
NOW_MS = 1_767_225_600_000
FIRST, SECOND = AbortedTransaction(7, 0, 1, 2), AbortedTransaction(8, 2, 5, 6)


def refuse(disk: SimDisk, path: str = ".txnindex") -> None:
    def on_call(call: str, where: str) -> OSError | None:
        return OSError(errno.EIO, "no", where) if call == "pwrite" and where.endswith(path) else None

    disk.on_call = on_call


@pytest.fixture
def disk() -> SimDisk:
    made = SimDisk()
    made.mkdir("/logs")
    return made


def test_golden_entry_is_kafkas(disk: SimDisk) -> None:
    index = TransactionIndex(disk, PATH)
    index.note(AbortedTransaction(1, 2, 3, 4))
    assert disk.contents(PATH).hex() == "0000" + "".join(f"{number:016x}" for number in (1, 2, 3, 4))
    assert TransactionIndex(disk, PATH, maybe_present=True).entries() == [AbortedTransaction(1, 2, 3, 4)]


def test_what_the_disk_refuses_counts_and_is_written_later(disk: SimDisk) -> None:
    index = TransactionIndex(disk, PATH)
    refuse(disk)
    index.note(FIRST)
    index.note(SECOND)
    assert index.entries() == [FIRST, SECOND]
    with pytest.raises(OSError, match="no"):
        index.write_pending()
    disk.on_call = None
    index.write_pending()
    assert TransactionIndex(disk, PATH, maybe_present=True).entries() == [FIRST, SECOND]
    assert index.entries() == [FIRST, SECOND]


def test_readers_begin_where_they_read(disk: SimDisk) -> None:
    index = TransactionIndex(disk, PATH)
    assert list(index.ending_at_or_after(0)) == []
    index.note(FIRST)
    assert list(index.ending_at_or_after(1)) == [FIRST]
    index.note(SECOND)
    assert list(index.ending_at_or_after(2)) == [SECOND], "also what was noted since it was read"
    assert list(index.ending_at_or_after(6)) == []
    refuse(disk)
    third = AbortedTransaction(9, 6, 8, 9)
    index.note(third)
    assert list(index.ending_at_or_after(5)) == [SECOND, third]
    assert list(index.ending_at_or_after(8)) == [third]
    index.reset()
    assert list(index.ending_at_or_after(0)) == []


def test_the_next_entry_brings_the_refused_one_along(disk: SimDisk) -> None:
    index = TransactionIndex(disk, PATH)
    refuse(disk)
    index.note(FIRST)
    disk.on_call = None
    index.note(SECOND)
    assert TransactionIndex(disk, PATH, maybe_present=True).entries() == [FIRST, SECOND]


@pytest.mark.parametrize("written", [True, False])
def test_truncation_drops_markers_at_and_above(disk: SimDisk, written: bool) -> None:
    index = TransactionIndex(disk, PATH)
    index.note(FIRST)
    if not written:
        refuse(disk)
    index.note(SECOND)
    disk.on_call = None
    index.truncate_to(5)
    assert index.entries() == [FIRST]
    index.write_pending()
    assert TransactionIndex(disk, PATH, maybe_present=True).entries() == [FIRST]


def test_a_cut_entry_is_none(disk: SimDisk) -> None:
    TransactionIndex(disk, PATH).note(FIRST)
    disk.put(PATH, disk.contents(PATH)[:-1])
    index = TransactionIndex(disk, PATH, maybe_present=True)
    assert index.entries() == []
    index.note(SECOND)
    assert index.entries() == [SECOND]


def test_a_marker_stands_although_its_index_entry_was_refused(disk: SimDisk) -> None:
    """The flow of a simulated run: the marker was in the file, the log did not know, and the batch after it was lost."""
    log = PartitionLog(disk, "/logs/t-0", LogConfig(), now_ms=lambda: 1_767_225_600_000)

    def write(sequence: int) -> None:
        log.append_as_leader(
            build_batch(
                [(1_767_225_600_000, b"k", b"v", [])],
                producer_id=7,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            ),
            0,
        )

    def abort() -> None:
        marker = build_end_transaction_marker(
            commit=False, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=1_767_225_600_000
        )
        log.append_as_leader(marker, 0, origin=AppendOrigin.COORDINATOR)

    write(0)
    refuse(disk)
    abort()
    disk.on_call = None
    write(1)
    assert log.log_end_offset == 3
    log.high_watermark = log.log_end_offset
    assert log.first_unstable_offset == 2
    assert [entry[:3] for entry in log.aborted_transactions(0, 3)] == [(7, 0, 1)]
    for survivor in (disk.copy(), disk):
        if survivor is disk:
            log.close()
        again = PartitionLog(
            survivor, "/logs/t-0", LogConfig(), now_ms=lambda: 1_767_225_600_000, clean=survivor is disk
        )
        assert again.log_end_offset == 3
        assert [entry[:3] for entry in again.aborted_transactions(0, 3)] == [(7, 0, 1)]


def test_transaction_index() -> None:
    disk = SimDisk()
    index = TransactionIndex(disk, "/x")
    assert index.entries() == []
    first, second = AbortedTransaction(7, 1, 9, 4), AbortedTransaction(8, 4, 12, 13)
    index.append(first)
    index.append(second)
    assert disk.contents("/x").hex()[:68] == ("00000000000000000007000000000000000100000000000000090000000000000004")
    assert index.entries() == [first, second]
    disk.put("/x", disk.contents("/x")[:-1])
    index = TransactionIndex(disk, "/x", maybe_present=True)
    assert index.entries() == [first]
    index.append(second)
    assert index.entries() == [first, second]
    index.truncate_to(12)
    assert index.entries() == [first]
    index.reset()
    assert not disk.exists("/x")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("segment_bytes", [100, 10_000])
def test_the_index_survives_a_power_cut_after_a_clean_stop(segment_bytes: int, seed: int) -> None:
    """The next start reads no batch, and would take the transaction for committed."""
    disk = SimDisk(seed)
    disk.mkdir("/logs")
    disk.sync_dir("/")
    config = LogConfig(segment_bytes=segment_bytes)
    log = PartitionLog(disk, "/logs/t-0", config, now_ms=lambda: NOW_MS)
    append_aborted(log)
    log.flush()
    log.close()
    disk.crash()
    log = PartitionLog(disk, "/logs/t-0", config, now_ms=lambda: NOW_MS, clean=True)
    assert log.aborted_transactions(0, 3) == [AbortedTransaction(7, 0, 1, 2)]
    log.truncate_to(0)
    log.close()
    disk.crash()
    log = PartitionLog(disk, "/logs/t-0", config, now_ms=lambda: NOW_MS, clean=True)
    log.append_as_leader(build_batch([(NOW_MS, b"k", b"v", [])] * 3), 0)
    assert log.aborted_transactions(0, 3) == []


def append_aborted(log: PartitionLog) -> None:
    batch = build_batch(
        [(NOW_MS, b"k", b"v", [])], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.append_as_leader(batch, 0)
    marker = build_end_transaction_marker(
        commit=False, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=NOW_MS
    )
    log.append_as_leader(marker, 0, origin=AppendOrigin.COORDINATOR)
