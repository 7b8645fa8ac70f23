"""A process that the demo starts, kills and starts again; its output is in a file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_STOPS_WITHIN_S = 60.0


class ChildProcess:
    """A process with processes of its own.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        log: the file that gets its output.
        environment: in addition to that of this process.
    """

    def __init__(self, command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]) -> None:
        self._command = command
        self._folder = folder
        self._log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} log={self._log} runs={self._process is not None}>"

    def start(self) -> None:
        """Start it; it continues where its files say."""
        with open(self._log, "ab") as log:
            # A session of its own: one signal reaches all its processes, and Ctrl-C reaches only the demo.
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env={**os.environ, **self._environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it with all its processes, without a word: as a machine that fails."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop it after the batches that it is in."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def last_words(self) -> str | None:
        """Return the last line of its output if it ended by itself, otherwise None."""
        if self._process is None or self._process.poll() is None:
            return None
        lines = self._log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        said = re.sub(r"\s+", " ", lines[-1])
        return f"{said} ({self._log} has the rest)"
