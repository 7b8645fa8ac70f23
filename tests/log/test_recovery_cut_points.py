"""Every place where a crash, a cut or rot can end the files of a small log.

The story: a log of a few segments, two leader epochs and one idempotent producer, flushed and check-pointed half way,
with unflushed segments after that. Its files are then cut at each byte, and each byte is changed, one file at a time; and
the log must open, hold what was flushed, hold nothing that was never written, and go on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.log.clean_shutdown_file import CLEAN_SHUTDOWN_FILE
from barnabas.log.log_manager import LogManager
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, assert_consistent, batch, manager, read_all

DIRECTORY = f"{ROOT}/{TOPIC}-0"


class NeverDone:
    """A future of work that the crash came before."""

    def add_done_callback(self, callback: object) -> None:
        pass


def tell(*, clean: bool = False) -> tuple[SimDisk, int, int]:
    """Returns the disk, the flushed offset, and the position in the active segment's file up to which it was flushed."""
    disk = SimDisk(1)
    started = manager(disk)
    log = started.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    append(log, 12)
    at_once(started.checkpoint())
    at_once(started.close())
    if clean:
        return disk, log.log_end_offset, -1
    later = manager(disk, run_blocking=lambda _work: NeverDone())
    log = later.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    flushed = log.log_end_offset
    append(log, 8, leader_epoch=1)
    assert log.recovery_point == flushed
    assert log.segment_count >= 4
    return disk.copy(), flushed, -1


def open_and_check(disk: SimDisk, *, flushed: int) -> LogManager:
    opened = manager(disk)
    log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
    if any("-stray/" in path for path in disk.paths()):
        # The changed byte made another valid topic id: the old directory is set aside, whole.
        assert any(path.endswith("-stray/00000000000000000000.log") for path in disk.paths())
        flushed = 0
    assert_consistent(log, flushed=flushed)
    return opened


def log_files(disk: SimDisk, suffix: str) -> list[str]:
    return [path for path in disk.paths() if path.endswith(suffix)]


def flushed_bytes(disk: SimDisk, path: str, flushed: int) -> int:
    """How many bytes of a .log were flushed."""
    from barnabas.records.record_batch import iter_batches

    data = disk.contents(path)
    end = 0
    for position, header in iter_batches(data):
        if header.base_offset < flushed:
            end = position + header.size
    return end


END = 40
"""Where the unclean story ends: its last segment has two batches."""
UNCLEAN = tell()
CLEAN = tell(clean=True)
DERIVED = [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata"]
CHECKPOINTS = ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]


def test_story_has_every_kind_of_file() -> None:
    for disk, _, _ in (UNCLEAN, CLEAN):
        for suffix in [".log", *DERIVED, *CHECKPOINTS]:
            assert log_files(disk, suffix), suffix
    assert f"{ROOT}/{CLEAN_SHUTDOWN_FILE}" in CLEAN[0].paths()
    assert f"{ROOT}/{CLEAN_SHUTDOWN_FILE}" not in UNCLEAN[0].paths()


def test_untouched_files_hold_everything() -> None:
    for disk, flushed, _ in (UNCLEAN, CLEAN):
        twin = disk.copy()
        opened = manager(twin)
        log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
        assert log.log_end_offset == (24 if disk is CLEAN[0] else END)
        assert_consistent(log, flushed=flushed)
        at_once(opened.close())
        open_again = manager(twin)
        again = open_again.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
        assert again.log_end_offset == log.log_end_offset
        assert len(read_all(again)) == again.log_end_offset


@pytest.mark.slow
def test_log_cut_at_each_unflushed_byte() -> None:
    disk, flushed, _ = UNCLEAN
    for path in log_files(disk, ".log"):
        data = disk.contents(path)
        for size in range(flushed_bytes(disk, path, flushed), len(data)):
            twin = disk.copy()
            twin.put(path, data[:size])
            open_and_check(twin, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0xFF, pytest.param(0x01, marks=pytest.mark.conform)])
def test_log_changed_at_each_unflushed_byte(mask: int) -> None:
    disk, flushed, _ = UNCLEAN
    for path in log_files(disk, ".log"):
        data = disk.contents(path)
        for at in range(flushed_bytes(disk, path, flushed), len(data)):
            twin = disk.copy()
            twin.put(path, data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            open_and_check(twin, flushed=flushed)


@pytest.mark.slow
def test_log_followed_by_garbage() -> None:
    disk, flushed, _ = UNCLEAN
    whole = bytes(batch(END))
    for path in log_files(disk, ".log"):
        for tail in (bytes(1), bytes(61), bytes(500), b"\xff" * 100, whole[:-1], disk.contents(path)):
            twin = disk.copy()
            twin.put(path, disk.contents(path) + tail)
            open_and_check(twin, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", DERIVED + CHECKPOINTS)
@pytest.mark.parametrize("story", [UNCLEAN, CLEAN], ids=["unclean", "clean"])
def test_derived_file_cut_at_each_byte(suffix: str, story: tuple[SimDisk, int, int]) -> None:
    disk, flushed, _ = story
    for path in log_files(disk, suffix):
        data = disk.contents(path)
        for size in range(len(data)):
            twin = disk.copy()
            twin.put(path, data[:size])
            open_and_check(twin, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", DERIVED + CHECKPOINTS)
@pytest.mark.parametrize("story", [UNCLEAN, CLEAN], ids=["unclean", "clean"])
def test_derived_file_changed_at_each_byte(suffix: str, story: tuple[SimDisk, int, int]) -> None:
    disk, flushed, _ = story
    for path in log_files(disk, suffix):
        data = disk.contents(path)
        for at in range(len(data)):
            for mask in (0x01, 0xFF):
                twin = disk.copy()
                twin.put(path, data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
                open_and_check(twin, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [*DERIVED, *CHECKPOINTS, CLEAN_SHUTDOWN_FILE])
@pytest.mark.parametrize("story", [UNCLEAN, CLEAN], ids=["unclean", "clean"])
def test_derived_file_missing(suffix: str, story: tuple[SimDisk, int, int]) -> None:
    disk, flushed, _ = story
    for path in log_files(disk, suffix):
        twin = disk.copy()
        twin.remove(path)
        open_and_check(twin, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("story", [UNCLEAN, CLEAN], ids=["unclean", "clean"])
def test_log_cut_in_flushed_bytes_opens_consistent(story: tuple[SimDisk, int, int]) -> None:
    """What was flushed and then cut is gone; the rest must still make a log that opens and goes on."""
    disk, _, _ = story
    [*_, path] = log_files(disk, ".log")
    data = disk.contents(path)
    for size in range(len(data)):
        twin = disk.copy()
        twin.put(path, data[:size])
        opened = manager(twin)
        log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
        assert_consistent(log, flushed=0)


class Elsewhere:
    """Blocking work that is done some time later, one piece after the other, as a thread would."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Finished]] = []

    def __call__(self, work: Callable[[], None]) -> Finished:
        future = Finished()
        self.waiting.append((work, future))
        return future

    def step(self) -> None:
        if self.waiting:
            work, future = self.waiting.pop(0)
            try:
                work()
            except OSError as error:
                future.error = error
            future.callback(future)


class Finished:
    """What `Elsewhere` returns."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.callback: Callable[[Finished], object] = lambda _: None

    def add_done_callback(self, callback: Callable[[Finished], object]) -> None:
        self.callback = callback

    def cancelled(self) -> bool:
        return False

    def exception(self) -> BaseException | None:
        return self.error


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_power_goes_at_any_moment(seed: int) -> None:
    """A run with rolls, flushes and checkpoints loses its power after any number of disk calls."""
    disk = SimDisk(seed)
    elsewhere = Elsewhere()
    flushed = 0
    acknowledged = 0
    budget = disk.random.randrange(10, 500)

    def power(call: str, path: str) -> OSError | None:
        if disk.calls > budget:
            raise PowerCut
        return None

    disk.on_call = power
    try:
        for _round in range(4):
            opened = manager(disk, run_blocking=elsewhere if seed % 2 else None)
            log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
            for _ in range(disk.random.randrange(1, 15)):
                append(log, 1, leader_epoch=_round)
                acknowledged = log.log_end_offset
                if disk.random.random() < 0.2:
                    log.flush()
                if disk.random.random() < 0.2:
                    log.flush_elsewhere()
                if disk.random.random() < 0.4:
                    elsewhere.step()
                flushed = max(flushed, log.recovery_point)
                if disk.random.random() < 0.1:
                    at_once(opened.checkpoint())
            at_once(opened.close())
            flushed = acknowledged
    except PowerCut:
        pass
    disk.on_call = None
    disk.crash()
    open_and_check(disk, flushed=flushed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_kill_loses_nothing_that_was_acknowledged(seed: int) -> None:
    """Without a power cut, what an append has returned for is there after recovery; only a torn last append may go."""
    disk = SimDisk(seed)
    acknowledged = 0
    for _round in range(3):
        budget = disk.calls + disk.random.randrange(10, 150)

        def power(call: str, path: str, budget: int = budget) -> OSError | None:
            if disk.calls > budget:
                raise PowerCut
            return None

        try:
            opened = manager(disk)
            log = opened.get_or_create(TOPIC, 0, TOPIC_ID, CONFIG)
            assert log.log_end_offset >= acknowledged
            disk.on_call = power
            while True:
                append(log, 1)
                acknowledged = log.log_end_offset
                # The write of an acknowledged append has returned: a kill cannot tear it any more.
                disk.last_write = None
        except PowerCut:
            disk.on_call = None
            disk.kill()
    open_and_check(disk, flushed=acknowledged)


class PowerCut(BaseException):
    """Not an error that anybody may catch."""
