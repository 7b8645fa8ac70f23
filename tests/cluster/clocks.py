"""Sets the clocks of single nodes, while they run: the one of dates, not the one of durations.

A library in C (`set_clock.c`), which is loaded before the C library, answers both programs' calls for the time. It needs Linux and a C
compiler. The files of a node keep the times of the machine's own clock.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess

_SOURCE = Path(__file__).with_name("set_clock.c")


class NoClocks(Exception):
    """This machine does not allow it; the message says why, in one line."""


class Clocks:
    """The clocks of a cluster's nodes, right at first.

    Args:
        cluster: not started yet.

    Raises:
        NoClocks: the machine does not allow it.
    """

    def __init__(self, cluster: Cluster) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None or not sys.platform.startswith("linux"):
            raise NoClocks("no C compiler" if compiler is None else "only Linux loads the library")
        library = cluster.folder / "set_clock.so"
        command = [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoClocks(f"{compiler}: {done.stderr.strip()}")
        for node in cluster.nodes.values():
            self.set(0, node)
            node.prefix = ("env", f"LD_PRELOAD={library}", f"CLOCK_FILE={self._file(node)}")

    @staticmethod
    def _file(node: NodeProcess) -> Path:
        return node.folder / "clock"

    def set(self, seconds: float, *nodes: NodeProcess) -> None:
        """Set the clocks of these nodes so far ahead of the right time, or back if it is negative."""
        for node in nodes:
            path = self._file(node)
            # In place: the process has the file mapped.
            path.touch()
            with path.open("r+b") as file:
                file.write(struct.pack("q", round(seconds * 1000)))
