"""Every place where the power can go while a follower truncates its log and writes other batches in place of the old ones.

All batches have one size, so that an old batch that comes back fits behind a new one. After each cut the log must be a prefix of what
it was or of what it was to become, never a mixture; and once it has followed its leader again it must be the leader's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from barnabas.simulation.disk import MUTATIONS, SimDisk
from tests.at_once import at_once
from tests.log.story import NOW_MS, ROOT, TOPIC, TOPIC_ID

CONFIG = LogConfig(segment_bytes=450, index_interval_bytes=100)
"""Six batches fill a segment."""


class PowerCut(BaseException):
    """Not an error that anybody may catch."""


def never(_: Callable[[], None]) -> Future[None]:
    """The future of work that the cut comes before."""
    return Future()


RunBlocking = Callable[[Callable[[], None]], Future[None]]


class Batch(NamedTuple):
    epoch: int
    value: bytes


def written(*epochs: int, value: bytes) -> list[Batch]:
    return [Batch(epoch, value) for epoch in epochs]


def stored(batches: list[Batch], first: int = 0) -> bytes:
    return b"".join(
        build_batch([(NOW_MS, b"key", batch.value, ())], base_offset=first + index, leader_epoch=batch.epoch)
        for index, batch in enumerate(batches)
    )


COMMON = written(*[1] * 7, value=b"same")
STORIES = {
    "new leader": (written(*[2] * 9, value=b"old "), written(*[3] * 9, value=b"new ")),
    # The new leader's first records are of an epoch before that of the follower's: only a durable truncation helps.
    "older records": (written(*[3] * 9, value=b"old "), written(*[2] * 5, *[4] * 4, value=b"new ")),
    "few records": (written(2, value=b"old "), written(3, value=b"new ")),
}


def manager(disk: SimDisk, run_blocking: RunBlocking | None = None) -> LogManager:
    opened = LogManager(
        disk,
        ROOT,
        now_ms=lambda: NOW_MS,
        config_for=lambda _: CONFIG,
        run_blocking=run_blocking,
    )
    at_once(opened.open())
    return opened


def contents(log: PartitionLog) -> list[Batch]:
    found: list[Batch] = []
    while len(found) < log.log_end_offset:
        data = log.read(len(found), 1000, max_offset=log.log_end_offset).read()
        for position, header in iter_batches(data):
            assert header.base_offset == len(found)
            found.append(Batch(header.partition_leader_epoch, data[position + header.size - 5 :][:4]))
    return found


def epochs_of(batches: list[Batch]) -> list[tuple[int, int]]:
    starts: dict[int, int] = {}
    for offset, batch in enumerate(batches):
        starts.setdefault(batch.epoch, offset)
    return list(starts.items())


def end_of_epoch(batches: list[Batch], epoch: int) -> tuple[int, int]:
    """What a leader with these batches returns for OffsetForLeaderEpoch."""
    known = [batch.epoch for batch in batches if batch.epoch <= epoch]
    return (known[-1], len(known)) if known else (-1, -1)


def truncate(log: PartitionLog, leader: list[Batch]) -> None:
    """Truncate to where the log diverges from its leader's, as a follower does."""
    while log.latest_epoch >= 0:
        epoch, end = end_of_epoch(leader, log.latest_epoch)
        if epoch == log.latest_epoch and log.log_end_offset <= end:
            return
        own_epoch, own_end = log.end_offset_for_epoch(epoch)
        log.truncate_to(min(end, own_end) if own_epoch >= 0 else 0)
        if own_epoch == epoch:
            return


def fetch(log: PartitionLog, leader: list[Batch], size: int) -> None:
    first = log.log_end_offset
    log.append_as_follower(stored(leader[first : first + size], first), 9)


def story(name: str, *, is_flushed: bool) -> tuple[SimDisk, list[Batch], list[Batch]]:
    """Returns the follower's disk, what the follower has, and what its leader has."""
    old, new = (COMMON + suffix for suffix in STORIES[name])
    disk = SimDisk()
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    while log.log_end_offset < len(old):
        fetch(log, old, 2)
    if is_flushed:
        log.flush()
        at_once(opened.checkpoint(sync=True))
    return disk, old, new


def run(disk: SimDisk, leader: list[Batch], run_blocking: RunBlocking | None, ends: list[int]) -> None:
    """Truncate and append, with flushes and checkpoints, up to a clean stop; `ends` gets each end that was flushed."""
    opened = manager(disk, run_blocking)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    truncate(log, leader)
    while log.log_end_offset < len(leader):
        fetch(log, leader, 2)
        at_once(opened.checkpoint())
    log.flush()
    ends.append(log.log_end_offset)
    at_once(opened.close())


@pytest.mark.slow
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("is_flushed", [False, True], ids=["unflushed", "flushed"])
@pytest.mark.parametrize("name", STORIES)
def test_power_goes_at_each_disk_call(name: str, is_flushed: bool, is_elsewhere: bool) -> None:
    before, old, new = story(name, is_flushed=is_flushed)
    run_blocking = never if is_elsewhere else None
    whole = before.copy()
    changes: list[int] = []
    whole.on_call = lambda call, _: changes.append(whole.calls) if call in MUTATIONS else None
    run(whole, new, run_blocking, [])
    for number in [*changes, whole.calls + 1]:
        for seed in range(3):
            disk = before.copy(seed)
            disk.on_call = cut_at(disk, number)
            ends: list[int] = []
            with contextlib.suppress(PowerCut):
                run(disk, new, run_blocking, ends)
            disk.on_call = None
            disk.crash()
            check(disk, old, new, ends)


def cut_at(disk: SimDisk, number: int) -> Callable[[str, str], OSError | None]:
    def power(call: str, path: str) -> OSError | None:
        if disk.calls >= number:
            raise PowerCut
        return None

    return power


def check(disk: SimDisk, old: list[Batch], new: list[Batch], ends: list[int]) -> None:
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    found = contents(log)
    assert found in (old[: len(found)], new[: len(found)]), found
    assert log.epoch_entries == epochs_of(found)
    if ends:
        assert found == new
    truncate(log, new)
    while log.log_end_offset < len(new):
        fetch(log, new, 4)
    assert contents(log) == new
    assert log.epoch_entries == epochs_of(new)
