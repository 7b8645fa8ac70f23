"""Another program in a process of its own: what it prints, and how it ends and starts again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cluster.waiting import wait_for

END_SECONDS = 180.0

Event = dict[str, Any]


class Program:
    """Runs one command, again and again if it must; a thread reads its lines.

    Args:
        name: of its files.
        folder: for what it prints.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self._command = command
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {'up' if self.is_up else 'down'}>"

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Begin a run."""
        assert not self.is_up, f"{self} runs"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with self._log.open("a") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                self.line(line.rstrip("\n"))

    def line(self, text: str) -> None:
        """Take in a line that it printed; called in the thread that reads."""
        with contextlib.suppress(ValueError):
            event = json.loads(text)
            if isinstance(event, dict):
                self.event(event)

    def event(self, event: Event) -> None:
        """Take in an event; called in the thread that reads."""

    def await_that(self, what: str, is_so: Any, seconds: float = END_SECONDS) -> None:
        """Wait for a condition while it runs.

        Raises:
            AssertionError: it has ended, or the condition has not come true.
        """

        def still() -> bool:
            done = bool(is_so())
            assert done or self.is_up, f"{self} has ended with {self.exit_code}:\n{self.last_lines()}"
            return done

        wait_for(f"{self.name}: {what}", still, seconds)

    def await_end(self, seconds: float = END_SECONDS) -> None:
        """Wait until the run is over, and all that it printed is read."""
        assert self._process is not None
        assert self._reader is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} does not end:\n{self.last_lines()}") from None
        self._reader.join()

    def stop(self, *, is_clean: bool = True) -> None:
        """End the run, by SIGTERM or by SIGKILL, and wait for that."""
        if self._process is None:
            return
        if self.is_up:
            self._process.terminate() if is_clean else self._process.kill()
        self.await_end()
        self._process = None

    def last_lines(self, count: int = 25) -> str:
        """Return what it printed last, to either stream."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-count:])
