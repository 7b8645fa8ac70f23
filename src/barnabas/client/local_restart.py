"""How another process asks the supervisor of `barnabas start --nodes` for the restart of a node.

DIR/.restart    a named pipe that the supervisor reads: the id of a node, a line each (`echo 2 > cluster/.restart`)
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["RESTART_PIPE", "NotSupervised", "ask_for_restart"]

RESTART_PIPE = ".restart"


class NotSupervised(Exception):
    """No supervisor reads the pipe."""


def ask_for_restart(folder: Path, node: int) -> None:
    """Ask the supervisor of a folder to restart a node; do not wait for it.

    Raises:
        NotSupervised: none runs there.
    """
    path = folder / RESTART_PIPE
    try:
        # Without a reader this open fails; with O_NONBLOCK it does not wait for one.
        pipe = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        raise NotSupervised(f"no cluster of `barnabas start --nodes` runs in {folder}") from None
    try:
        if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
            raise NotSupervised(f"{path} is not the pipe of a supervisor")
        os.write(pipe, b"%d\n" % node)
    finally:
        os.close(pipe)
