"""The child process that compacts: same result as inline, gone when cancelled, gone with its broker."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.log.cleanable_log import CleanerConfig, measure, task_for
from barnabas.log.cleaner_worker import CANCELLED, CleanerWorker, InlineWorker, ProcessWorker
from barnabas.log.cleaning_task import (
    CleaningDone,
    CleaningEvent,
    CleaningFailed,
    CleaningTask,
    GroupCleaned,
)
from barnabas.log.disk import OsDisk
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import run_inline
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from tests.log.small_log import Clock
from tests.log.story import NOW_MS

WAIT_SECONDS = 120


def a_task(directory: Path, **changes: object) -> CleaningTask:
    """Writes a log of four segments and says what there is to clean."""
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=100_000)
    log = PartitionLog(OsDisk(), str(directory), config, now_ms=Clock())
    for i in range(40):
        records = [(NOW_MS + i, b"k%d" % (j % 7), b"%d" % i * 10, ()) for j in range(20)]
        log.append_as_leader(build_batch(records, producer_id=7, producer_epoch=0, base_sequence=20 * i), 0)
        if i % 10 == 9:
            log.roll()
    log.high_watermark = log.log_end_offset
    task = task_for(log, measure(log, None, NOW_MS), CleanerConfig(dedupe_buffer_bytes=24_000), NOW_MS)
    log.close()
    return task._replace(**changes)  # type: ignore[arg-type]


def cleaned_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name.endswith(".cleaned")}


@pytest.mark.slow
def test_the_child_writes_what_inline_cleaning_writes(tmp_path: Path) -> None:
    files = []
    events: list[list[CleaningEvent]] = [[], []]
    process = ProcessWorker(run_inline)
    workers: tuple[CleanerWorker, ...] = (InlineWorker(OsDisk()), process)
    for number, worker in enumerate(workers):
        directory = tmp_path / f"{number}" / "orders-0"
        worker.start(a_task(directory), events[number].append)
        files.append(cleaned_files(directory))
    assert files[0] == files[1]
    assert len(files[0]) == 3
    assert [type(event) for event in events[1]] == [GroupCleaned, CleaningDone]
    assert events[0][0] == events[1][0]
    # The child stays for the next task, and goes when there is none.
    pid = process.pid
    assert pid is not None
    process.start(a_task(tmp_path / "next-0"), events[1].append)
    assert process.pid == pid
    process.rest()
    assert process.pid is None
    assert process.deaths == 0


@pytest.mark.slow
def test_a_corrupt_segment_is_an_answer_and_not_the_childs_end(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    task = a_task(directory)
    first = directory / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    events: list[CleaningEvent] = []
    worker = ProcessWorker(run_inline)
    worker.start(task, events.append)
    [failed] = events
    assert isinstance(failed, CleaningFailed)
    assert failed.is_corrupt
    assert worker.pid is not None
    worker.start(task._replace(directory=str(tmp_path / "gone-0")), events.append)
    assert isinstance(events[1], CleaningFailed)
    assert not events[1].is_corrupt
    worker.rest()


@pytest.mark.slow
@pytest.mark.parametrize("by_itself", [False, True])
def test_a_cancelled_or_dead_child_fails_its_task_and_is_replaced(tmp_path: Path, by_itself: bool) -> None:
    directory = tmp_path / "orders-0"
    # At this pace it would take hours.
    task = a_task(directory, max_bytes_per_second=1.0)
    events: list[CleaningEvent] = []
    threads: list[threading.Thread] = []

    def elsewhere(work: object, done: object) -> None:
        def run() -> None:
            work()  # type: ignore[operator]
            done(None)  # type: ignore[operator]

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    worker = ProcessWorker(elsewhere)
    worker.start(task, events.append)
    if by_itself:
        # It has begun to write, so it is in the midst of the work.
        while worker.pid is None:
            assert threads[0].is_alive()
        os.kill(worker.pid, signal.SIGKILL)
    else:
        worker.cancel()
    threads[0].join(WAIT_SECONDS)
    [failed] = events
    assert isinstance(failed, CleaningFailed)
    assert (failed.reason == CANCELLED) is not by_itself
    assert worker.deaths == int(by_itself)
    assert worker.pid is None
    # The next task starts another child.
    worker.start(a_task(tmp_path / "again-0"), events.append)
    for thread in threads[1:]:
        thread.join(WAIT_SECONDS)
    while threads[-1].is_alive():
        threads[-1].join(WAIT_SECONDS)
    assert isinstance(events[-1], GroupCleaned | CleaningDone)
    worker.cancel()
    for thread in list(threads):
        thread.join(WAIT_SECONDS)
    worker.rest()


@pytest.mark.slow
def test_a_child_that_is_killed_after_its_last_event_does_not_get_the_next_task(tmp_path: Path) -> None:
    under_way: list[Callable[[], None]] = []

    def held_back(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        work()
        under_way.append(lambda: done(None))

    worker = ProcessWorker(held_back)
    first: list[CleaningEvent] = []
    worker.start(a_task(tmp_path / "orders-0"), first.append)
    under_way.pop()()
    # The child's CleaningDone has been read, and nobody knows yet.
    worker.cancel()
    under_way.pop()()
    assert isinstance(first[-1], CleaningDone)
    assert worker.pid is None

    second: list[CleaningEvent] = []
    worker.start(a_task(tmp_path / "again-0"), second.append)
    while under_way:
        under_way.pop()()
    assert [type(event) for event in second] == [GroupCleaned, CleaningDone]
    assert worker.deaths == 0
    worker.rest()
