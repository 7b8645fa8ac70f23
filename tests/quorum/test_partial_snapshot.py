"""A snapshot that is received in pieces: damaged, given up, and cut off at every call of the disk."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.metadata.snapshots import build_voters_checkpoint
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quorum.metadata_log import HEAD_BYTES, MetadataLog
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from barnabas.simulation.disk import SimDisk

DIRECTORY = "/data/__cluster_metadata-0"
CONFIG = LogConfig(segment_bytes=300, segment_ms=1 << 40, retention_ms=-1, retention_bytes=-1, file_delete_delay_ms=0)
VOTERS = VoterSet.of([Voter(1, b"1" * 16), Voter(2, b"2" * 16)])
DATA = build_voters_checkpoint(VOTERS, 7)
PIECE = 40


def opened(disk: SimDisk) -> MetadataLog:
    return MetadataLog(disk, "/data", CONFIG, now_ms=lambda: 7)


def append(log: MetadataLog, epoch: int) -> None:
    log.append(build_batch([(7, None, b"v" * 20, ())], base_offset=log.end_offset, leader_epoch=epoch), epoch)


def disk_with(count: int, epoch: int) -> SimDisk:
    """A disk with a log of so many records and a snapshot of the first four."""
    disk = SimDisk()
    log = opened(disk)
    for _ in range(count):
        append(log, epoch)
    log.flush(lambda: None)
    asyncio.run(log.write_snapshot(SnapshotId(4, epoch), DATA))
    log.close()
    return disk


def receive(log: MetadataLog, snapshot: SnapshotId) -> VoterSet | None:
    incoming = log.receive_snapshot(snapshot)
    for start in range(0, len(DATA), PIECE):
        incoming.append(DATA[start : start + PIECE])
    asyncio.run(incoming.complete())
    return log.begin_at(incoming)


def names(disk: SimDisk) -> list[str]:
    return [name for name in disk.listdir(DIRECTORY) if ".checkpoint" in name and not name.startswith("leader")]


def test_the_log_begins_and_ends_at_a_snapshot_that_is_complete() -> None:
    disk = disk_with(9, epoch=1)
    log = opened(disk)
    assert receive(log, SnapshotId(20, 3)) == VOTERS
    assert (log.start_offset, log.end_offset, log.last_epoch) == (20, 20, 3)
    assert (log.earliest_snapshot(), log.latest_snapshot()) == (SnapshotId(20, 3), SnapshotId(20, 3))
    assert log.read_snapshot(SnapshotId(20, 3)) == DATA
    assert names(disk) == ["00000000000000000020-0000000003.checkpoint"]
    append(log, 3)
    assert log.end_offset == 21


def test_only_the_head_of_a_large_snapshot_is_read_for_its_voters() -> None:
    """That is one turn of the loop, whatever the size of the metadata."""
    ends = [position + header.size for position, header in iter_batches(DATA)]
    records = bytes(build_batch([(7, None, b"v" * (10 * HEAD_BYTES), ())], base_offset=9, leader_epoch=3))
    data = DATA[: ends[-2]] + records + DATA[ends[-2] :]
    log = opened(disk_with(9, epoch=1))
    incoming = log.receive_snapshot(SnapshotId(20, 3))
    incoming.append(data)
    asyncio.run(incoming.complete())
    read: list[tuple[int, int]] = []
    log.read_snapshot_piece = reading = Reading(log, read)  # type: ignore[method-assign]
    assert log.begin_at(incoming) == VOTERS
    assert read == [(0, HEAD_BYTES)], reading
    assert log.read_snapshot(SnapshotId(20, 3)) == data


class Reading:
    """Notes each piece that is read."""

    def __init__(self, log: MetadataLog, read: list[tuple[int, int]]) -> None:
        self._piece_of, self._read = log.read_snapshot_piece, read

    def __call__(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
        self._read.append((position, max_bytes))
        return self._piece_of(snapshot, position, max_bytes)


def test_an_epoch_before_the_log_ends_where_the_snapshot_ends() -> None:
    """A leader that said otherwise would have its followers cut off what is committed."""
    log = opened(disk_with(9, epoch=1))
    receive(log, SnapshotId(20, 3))
    assert [log.end_offset_for_epoch(epoch) for epoch in (2, 3, 4)] == [(3, 20)] * 3
    append(log, 5)
    assert [log.end_offset_for_epoch(epoch) for epoch in (2, 3, 4)] == [(3, 20)] * 3
    assert [log.end_offset_for_epoch(epoch) for epoch in (5, 6)] == [(5, 21)] * 2


def test_a_snapshot_is_read_in_pieces() -> None:
    log = opened(disk_with(9, epoch=1))
    snapshot = SnapshotId(4, 1)
    assert log.snapshot_size(snapshot) == len(DATA)
    pieces = [log.read_snapshot_piece(snapshot, start, PIECE) for start in range(0, len(DATA), PIECE)]
    assert b"".join(pieces) == DATA
    assert log.snapshot_size(SnapshotId(5, 1)) is None


@pytest.mark.parametrize("data", [b"", DATA[:-1], DATA[:70] + b"?" + DATA[71:]], ids=["nothing", "cut", "damaged"])
def test_a_damaged_snapshot_is_not_taken(data: bytes) -> None:
    disk = disk_with(9, epoch=1)
    log = opened(disk)
    incoming = log.receive_snapshot(SnapshotId(20, 3))
    incoming.append(data)
    with pytest.raises(KafkaError) as refused:
        asyncio.run(incoming.complete())
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    incoming.discard()
    assert names(disk) == ["00000000000000000004-0000000001.checkpoint"]
    assert (log.start_offset, log.end_offset) == (4, 9)


def test_what_a_failing_disk_keeps_is_deleted_by_the_next_start() -> None:
    disk = disk_with(9, epoch=1)
    incoming = opened(disk).receive_snapshot(SnapshotId(20, 3))
    disk.on_call = lambda call, path: OSError(5, "no") if call == "remove" else None
    incoming.discard()
    disk.on_call = None
    assert len(names(disk)) == 2
    opened(disk)
    assert names(disk) == ["00000000000000000004-0000000001.checkpoint"]


@pytest.mark.parametrize("ending", ["power", "process"])
@pytest.mark.parametrize(
    ("count", "epoch"), [(9, 1), (9, 3), (30, 1)], ids=["behind", "behind in the same epoch", "another log"]
)
def test_a_cut_at_any_call_leaves_the_log_or_the_snapshot(count: int, epoch: int, ending: str) -> None:
    class Cut(BaseException):
        pass

    wanted = SnapshotId(20, 3)
    number, is_cut, seen = 0, True, set()
    while is_cut:
        number += 1
        disk = disk_with(count, epoch).copy(number)
        log = opened(disk)
        before = [bytes(batch) for batch in log.read(4, count)]
        reached = 0

        def cut(call: str, path: str, limit: int = number) -> None:
            nonlocal reached
            reached += 1
            if reached == limit:
                raise Cut

        disk.on_call = cut
        try:
            receive(log, wanted)
            is_cut = False
        except Cut:
            pass
        disk.on_call = None
        if ending == "power":
            disk.crash()
        else:
            disk.last_write = None
            disk.kill()

        log = opened(disk)
        assert not any(name.endswith(".part") for name in names(disk))
        is_taken = log.latest_snapshot() == wanted
        seen.add(is_taken)
        if is_taken:
            assert (log.start_offset, log.end_offset, log.last_epoch) == (20, 20, 3)
            assert (log.earliest_snapshot(), log.read_snapshot(wanted)) == (wanted, DATA)
        else:
            assert (log.start_offset, log.end_offset, log.last_epoch) == (4, count, epoch)
            assert [bytes(batch) for batch in log.read(4, count)] == before
            assert receive(log, wanted) == VOTERS
        append(log, 3)
        log.close()
        assert opened(disk).end_offset == 21
    assert seen == {False, True}
    assert number > 20
