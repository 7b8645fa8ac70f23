"""How a node is stopped and started: by commands that the operator gave, or by the operator, for whom the commands are printed.

A command runs in a session of its own, with its output in a file, so that a node that it starts in the foreground outlives
`barnabas adopt`, however that ends. The result of a change is what is seen of the node: an exit code only explains why nothing is seen.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.adopt.change import Act
from barnabas.words.printable import printable

__all__ = ["Operator", "Way"]

_LAST_BYTES = 4096


class Way(NamedTuple):
    """How to stop or to start a node.

    Attributes:
        what: in words, such as `stop node 2`.
        typed: the command to type.
        command: a command for `sh` that does it; None if a person does.
    """

    what: str
    typed: str
    command: str | None = None


class Operator:
    """Stops and starts one node.

    Args:
        ways: of STOP and START.
        say: prints a line.

    Attributes:
        process: of the last command; None if a person does it.
    """

    def __init__(self, ways: Mapping[Act, Way], say: Callable[[str], None]) -> None:
        self._ways = ways
        self._say = say
        self.process: subprocess.Popen[bytes] | None = None
        self._command = self._path = ""

    def do(self, act: Act) -> None:
        """Begin to stop or to start the node; whether it has is for the caller to see."""
        way = self._ways[act]
        if way.command is None:
            self.process = None
            self._say(f"{way.what} now: {way.typed}")
            return
        self._say(f"{way.what}: {way.command}")
        descriptor, self._path = tempfile.mkstemp(prefix="barnabas-adopt-", suffix=".log")
        try:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", way.command],
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        self._command = way.command

    def failure(self) -> str | None:
        """Return how the last command failed, as a sentence; None if it runs, has succeeded, or a person does it."""
        code = None if self.process is None else self.process.poll()
        if not code:
            return None
        last = _last_line(self._path)
        said = f"; its last line: {last}" if last else ""
        return f"`{printable(self._command)}` ended with code {code}{said} ({self._path})"


def _last_line(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - _LAST_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    return printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))
