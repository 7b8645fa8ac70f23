"""`barnabas adopt next` and `back` as an operator types them, with a service manager that stops and starts the nodes of this run.

The command's own stop and start commands only leave a note for the service manager, as `systemctl --no-block` does. The command may be
killed at a moment; it is typed again then, and has to go on.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.cluster.waiting import NeverCame, wait_for

LIMIT_SECONDS = 400
STOP, START = "stop", "start"


class ServiceManager(NamedTuple):
    """Stops and starts a node; both return at once or when it is done."""

    stop: Callable[[], object]
    start: Callable[[], object]


def typed(words: Sequence[str], manager: ServiceManager, kill_after_seconds: float | None) -> str:
    """Type a command, and again if it is killed; return what was done to it, in words.

    Args:
        words: after `barnabas adopt`, without the commands that stop and start.
        kill_after_seconds: when the first command is killed; None for never. A command that has ended by then is not.

    Raises:
        AssertionError: the command failed.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="typed-")))
        if kill_after_seconds is not None and _run(words, folder, manager, kill_after_seconds):
            _run(words, folder, manager, None, may_have_ended=True)
            return f"the command killed after {kill_after_seconds:.1f} s"
        if kill_after_seconds is None:
            _run(words, folder, manager, None)
    return "by the command"


def _run(
    words: Sequence[str],
    folder: Path,
    manager: ServiceManager,
    kill_after_seconds: float | None,
    *,
    may_have_ended: bool = False,
) -> bool:
    """Run the command to its end or until it is killed; return whether it was killed.

    Args:
        may_have_ended: a command before this one has perhaps done everything, which a replacement refuses to repeat.
    """
    notes = {STOP: folder / STOP, START: folder / START}
    given = [f"--{each}-command=touch {shlex.quote(str(note))}" for each, note in notes.items()]
    command = [sys.executable, "-m", "barnabas", "adopt", *words, *given, "--limit", str(LIMIT_SECONDS)]
    deeds = {STOP: manager.stop, START: manager.start}
    environment = {**os.environ, "TMPDIR": str(folder)}
    with (folder / "printed").open("w+") as printed:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment)

        def ended() -> bool:
            for each, note in notes.items():
                if note.exists():
                    note.unlink()
                    deeds[each]()
            return process.poll() is not None

        try:
            wait_for("the command ends", ended, LIMIT_SECONDS if kill_after_seconds is None else kill_after_seconds)
        except NeverCame:
            process.kill()
            process.wait()
            if kill_after_seconds is None:
                raise
            ended()
            return True
        said = (folder / "printed").read_text()
        assert process.returncode == 0 or (may_have_ended and "nothing is left to do" in said), said
    return False
