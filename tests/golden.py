"""Golden scripts: commands, each followed by the exact trace of what happened.

    > join a                    a command: a word, and what it is about
    a: join NONE                the trace: a line for each thing that happened, in its order
      group g Stable 1 [a.1]    the states that have changed since the last command

`# ...` is a comment. Each folder of scripts has its `Script`, whose methods `do_...` are the commands. With UPDATE_SCRIPTS=1 in the
environment the traces are rewritten: read the difference, a trace that was only recorded shows nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_TIME = re.compile(r"(\d+)(ms|s|m|h|d)$")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Script:
    """Runs the commands of one script.

    Attributes:
        trace: what the current command has done so far.
    """

    def __init__(self) -> None:
        self.trace: list[str] = []
        self._seen: dict[str, str] = {}

    def run(self, text: str) -> str:
        """Run every command of a script; return the script with the traces that came out."""
        out: list[str] = []
        for line in text.splitlines():
            if line.startswith(">"):
                out += [line, *self.command(line[1:])]
            elif not line.strip() or line.startswith("#"):
                out.append(line)
        return "\n".join(out) + "\n"

    def command(self, line: str) -> list[str]:
        """Run one command; return its trace."""
        self.trace = []
        name, *words = shlex.split(line)
        self.do(name, words)
        self.settle()
        self.trace_states()
        return self.trace

    def do(self, name: str, words: list[str]) -> None:
        getattr(self, "do_" + name.replace("-", "_"))(*words)

    def settle(self) -> None:
        """Let happen what a command has made ready."""

    def states(self) -> Mapping[str, str]:
        """Return the state of each thing that a script is about, by its name."""
        return {}

    def trace_states(self) -> None:
        """Trace the states that have changed."""
        states = dict(self.states())
        self.trace += [f"  {state}" for name, state in states.items() if self._seen.get(name) != state]
        self.trace += [f"  {name} is not here" for name in self._seen if name not in states]
        self._seen = states

    def close(self) -> None:
        """End what the script has begun."""


def milliseconds(text: str) -> int:
    """Return how long `30s` is."""
    match = _TIME.match(text)
    assert match, f"{text} is no time"
    return int(match[1]) * _UNIT_MS[match[2]]


def options(words: Iterable[str]) -> dict[str, str]:
    """Return the words `name=value`."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def scripts_in(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.txt"))
    assert found, f"no scripts in {folder}"
    return found


def name_of(path: Path) -> str:
    return path.stem


def play(path: Path, new_script: Callable[[], Script]) -> None:
    """Fail if a script's traces are not exactly as written; with UPDATE_SCRIPTS=1 rewrite them."""
    written = path.read_text(encoding="utf-8")
    script = new_script()
    try:
        played = script.run(written)
    finally:
        script.close()
    if os.environ.get("UPDATE_SCRIPTS"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == written
