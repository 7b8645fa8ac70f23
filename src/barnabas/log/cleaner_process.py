"""The child process that compacts logs for a broker: `python -m barnabas.log.cleaner_process`.

    standard input    a task a line         it ends when the broker ends, and then this process ends
    standard output   an event a line       each segment as soon as it is ready, then done or failed

It imports nothing but the log and the records: no event loop, no server. A thread waits for the end of the input, so that the process
ends with its broker even in the middle of a cleaning.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import BinaryIO

from barnabas.log.cleaner import clean_or_fail
from barnabas.log.cleaning_task import event_to_line, task_from_line
from barnabas.log.disk import Disk, OsDisk

NICENESS = 5
"""Requests have priority: the broker's own process is not nice."""


class Pace:
    """Waits so that at most so many bytes per second pass on average (Kafka's `Throttler`)."""

    def __init__(
        self,
        max_bytes_per_second: float,
        *,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = max_bytes_per_second
        self._seconds = seconds
        self._sleep = sleep
        self._started = seconds()
        self._bytes = 0

    def __call__(self, count: int) -> None:
        self._bytes += count
        ahead = self._bytes / self._rate - (self._seconds() - self._started)
        if ahead > 0:
            self._sleep(ahead)


def serve(tasks: Callable[[], bytes], out: BinaryIO, disk: Disk) -> None:
    """Do one task after another until `tasks` returns an empty line."""
    while line := tasks():
        task = task_from_line(line)
        for event in clean_or_fail(task, disk, pace=Pace(task.max_bytes_per_second)):
            out.write(event_to_line(event))
            out.flush()


def main() -> None:
    # An interrupt from the terminal is for the broker, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, name="broker", daemon=True).start()
    serve(lines.get, sys.stdout.buffer, OsDisk())


if __name__ == "__main__":
    main()
