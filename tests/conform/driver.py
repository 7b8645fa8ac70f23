"""One driver process: a client library behind JSON lines (drivers/protocol.md)."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANSWER_SECONDS = 300
"""A driver that is silent for so long never speaks again; it is killed, so that what waits for it goes on."""


class DriverError(AssertionError):
    """The client's library reported an error; `code` is Kafka's number for it, or None."""

    def __init__(self, text: str, code: int | None) -> None:
        super().__init__(text)
        self.code = code


class Driver:
    """A driver in a process of its own; calling it sends one command and waits for the answer.

    Args:
        command: starts it.
        log: what it prints to standard error is appended to this file.
        before_command: called before each command.
    """

    def __init__(self, command: list[str], log: Path, before_command: Callable[[], None] = lambda: None) -> None:
        self._before_command = before_command
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
            )
        self.log = log

    def ask(self, do: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self._before_command()
        self.process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        alarm = threading.Timer(ANSWER_SECONDS, self.process.kill)
        alarm.start()
        try:
            line = self.process.stdout.readline()
        finally:
            alarm.cancel()
        if not line:
            raise DriverError(f"the driver ended: {self.log.read_text(errors='replace')[-1500:]}", None)
        answer = json.loads(line)
        if "error" in answer:
            raise DriverError(f"{answer['error']}\n{answer.get('trace', '')}", answer.get("code"))
        return answer["ok"]

    def __call__(self, do: str, **fields: Any) -> Any:
        self.ask(do, **fields)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self("close")
            self.process.wait(ANSWER_SECONDS)
