"""Runs a cleaning: in a child process, or inline.

`ProcessWorker` keeps a broker's event loop free: another Python process reads and writes the segments (`cleaner_process`), and
the broker only exchanges files. The child is started with the first task, used for all tasks that follow immediately, and ended
when there is nothing left to clean. It holds no state worth keeping, so it may be killed at any moment: that is how a cleaning is
cancelled. When the broker ends in any way, the child's standard input ends, and then the child.

Reading the child's events blocks, so it runs through `run_blocking`, one event at a time; nothing here needs an event loop.

`InlineWorker` does the work in the call, on any disk: for tests, tools and the simulation.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from barnabas.log.cleaner import clean_or_fail
from barnabas.log.cleaning_task import (
    CleaningEvent,
    CleaningFailed,
    CleaningTask,
    GroupCleaned,
    event_from_line,
    task_to_line,
)
from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.log_flusher import RunBlocking

logger = logging.getLogger(__name__)

OnEvent = Callable[[CleaningEvent], None]
MODULE = "barnabas.log.cleaner_process"
CANCELLED = "it was cancelled"


class CleanerWorker(Protocol):
    """Cleans one log at a time.

    The caller removes the `.cleaned` files of a failed cleaning, for it may be renaming some of them meanwhile.
    """

    deaths: int
    """How many times the worker has died without being cancelled."""

    def start(self, task: CleaningTask, on_event: OnEvent) -> None:
        """Begin a cleaning. `on_event` gets each new segment, then exactly one CleaningDone or CleaningFailed."""
        ...

    def cancel(self) -> None:
        """End the cleaning under way, which then fails."""
        ...

    def rest(self) -> None:
        """Free resources: there is nothing to clean for a while."""
        ...


class InlineWorker:
    """Cleans in `start`, before it returns."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._is_cancelled = False
        self.deaths = 0

    def start(self, task: CleaningTask, on_event: OnEvent) -> None:
        self._is_cancelled = False
        for event in clean_or_fail(task, self._disk):
            if self._is_cancelled:
                event = CleaningFailed(CANCELLED, is_corrupt=False)
            on_event(event)
            if isinstance(event, CleaningFailed):
                return

    def cancel(self) -> None:
        self._is_cancelled = True

    def rest(self) -> None:
        pass


class ProcessWorker:
    """Cleans in a child process, with the operating system's files."""

    def __init__(self, run_blocking: RunBlocking) -> None:
        self._run_blocking = run_blocking
        self._process: subprocess.Popen[bytes] | None = None
        # The process is started and read from in other threads, and killed from this one.
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._is_busy = False
        self.deaths = 0

    def __repr__(self) -> str:
        return f"<ProcessWorker pid={self._process.pid if self._process else None} busy={self._is_busy}>"

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is no child."""
        process = self._process
        return process.pid if process is not None else None

    def start(self, task: CleaningTask, on_event: OnEvent) -> None:
        assert not self._is_busy, "one cleaning at a time"
        self._is_busy = True
        self._is_cancelled = False
        self._ask(task_to_line(task), on_event)

    def _ask(self, line: bytes, on_event: OnEvent) -> None:
        answers: list[CleaningEvent] = []

        def work() -> None:
            answers.append(self._exchange(line))

        def done(error: BaseException | None) -> None:
            event = answers[0] if answers else _no_answer(error)
            if not isinstance(event, GroupCleaned):
                if self._is_cancelled:
                    # The child may have sent its last event just before it was killed; it must not get the next task.
                    self._reap()
                self._is_busy = False
                on_event(event)
                return
            if not self._is_cancelled:
                on_event(event)
            # The last event follows after a cancellation too.
            self._ask(b"", on_event)

        self._run_blocking(work, done)

    def _exchange(self, line: bytes) -> CleaningEvent:
        """Send a task, if given, and wait for the next event; runs in another thread."""
        process = self._running(start=bool(line))
        answer = b""
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError, ValueError):
                if line:
                    process.stdin.write(line)
                    process.stdin.flush()
                answer = process.stdout.readline()
        if answer.endswith(b"\n"):
            return event_from_line(answer)
        self._reap()
        if self._is_cancelled:
            return CleaningFailed(CANCELLED, is_corrupt=False)
        self.deaths += 1
        return CleaningFailed("the cleaning process has ended", is_corrupt=False)

    def _running(self, *, start: bool) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and start and not self._is_cancelled:
                # The child finds the package where this process found it, installed or not.
                path = os.pathsep.join(entry for entry in sys.path if entry)
                self._process = subprocess.Popen(
                    [sys.executable, "-m", MODULE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": path},
                )
            return self._process

    def _reap(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            _close_pipes(process)
            process.wait()

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            if self._process is not None and self._is_busy:
                self._process.kill()

    def rest(self) -> None:
        """End the child; the next task starts another."""
        if self._is_busy:
            return
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            # The end of its input ends it; a kill makes sure, so that the wait is short.
            process.kill()
            _close_pipes(process)
            process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _no_answer(error: BaseException | None) -> CleaningFailed:
    return CleaningFailed("the cleaning process has ended" if error is None else in_words(error), is_corrupt=False)
