"""Transcripts: command lines with what they must print, run in this process against a broker.

    # a comment
    $ barnabas produce orders -K:
    < a:1                          a line of standard input, with escapes
    produced 1 records (orders-0: 1)
    ! a line of standard error
    [exit 1]                       when the exit code is not 0

What differs from run to run is replaced: topic ids, member ids and the broker's address.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from barnabas.main import command_group

_VARYING = [
    (re.compile(r"TOPIC-ID    \S{22}"), "TOPIC-ID    (id)"),
    (re.compile(r'"topic_id": "\S{22}"'), '"topic_id": "(id)"'),
    (re.compile(r"(CREATED +|\"created\": \")\d{4}-[-\dT:.]+Z"), r"\1(time)"),
    (re.compile(r"127\.0\.0\.1:(?!1\b)\d+"), "(broker)"),
]


@dataclass
class Step:
    """A command line, its input, and what it printed or must print."""

    command: str
    comments: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def text(self) -> str:
        lines = [*self.comments, f"$ {self.command}", *(f"< {line}" for line in self.given), *self.printed]
        return "\n".join(lines)


def read_transcript(path: Path) -> list[Step]:
    steps: list[Step] = []
    comments: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            comments.append(line)
        elif line.startswith("$ "):
            steps.append(Step(line[2:], comments))
            comments = []
        elif line.startswith("< "):
            steps[-1].given.append(line[2:])
        elif steps and not comments:
            steps[-1].printed.append(line)
    for step in steps:
        while step.printed and not step.printed[-1]:
            step.printed.pop()
    return steps


def run_step(step: Step, bootstrap: str) -> Step:
    """Runs a step's command; returns it with what was printed."""
    program, *arguments = shlex.split(step.command)
    assert program == "barnabas"
    given = "".join(line + "\n" for line in step.given)
    environment = {"BARNABAS_BOOTSTRAP_SERVERS": bootstrap}
    result = CliRunner().invoke(command_group(), arguments, input=given, env=environment, prog_name="barnabas")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    printed = result.stdout_bytes.decode()
    for pattern, replacement in _VARYING:
        printed = pattern.sub(replacement, printed)
    lines = printed.splitlines()
    lines += [f"! {line}" for line in result.stderr.splitlines()]
    if result.exit_code:
        lines.append(f"[exit {result.exit_code}]")
    return Step(step.command, step.comments, step.given, [line.rstrip() for line in lines])


def play(path: Path, bootstrap: str, *, attempts: int = 1) -> tuple[str, str]:
    """Runs a transcript; returns what it expects and what happened, as texts to compare.

    Args:
        attempts: how often to ask again for what a broker may learn of only a moment later (lists and descriptions).
    """
    steps = read_transcript(path)
    happened = []
    for step in steps:
        for _ in range(attempts if step.command.split()[2:3] in (["list"], ["describe"]) else 1):
            found = run_step(step, bootstrap)
            if found.printed == step.printed:
                break
        happened.append(found)
    return "\n\n".join(step.text() for step in steps) + "\n", "\n\n".join(step.text() for step in happened) + "\n"
