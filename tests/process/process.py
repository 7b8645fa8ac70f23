"""The real `barnabas start` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ENVIRONMENT = {name: value for name, value in os.environ.items() if name[:6] != "KAFKA_" and name != "CLUSTER_ID"}
"""The caller's environment without settings of a broker."""
_READY = re.compile(r"barnabas ready on (\S+):(\d+)\n")


class Node:
    """A started node; the first line it printed is `ready`.

    Args:
        launcher: a command that runs the rest of its arguments.
    """

    def __init__(
        self, data_dir: Path, *arguments: str, listen: str = "127.0.0.1:0", launcher: Sequence[str] = ()
    ) -> None:
        self.log_path = data_dir.parent / f"{data_dir.name}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*launcher, *command("start", "--data-dir", str(data_dir), "--listen", listen, *arguments)],
                stdout=subprocess.PIPE,
                stderr=log,
                env=ENVIRONMENT,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = _READY.fullmatch(line)
        assert found is not None, (line, self.log_path.read_text())
        self.host, self.port = found[1], int(found[2])

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    def signal(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; returns the exit code, negative for a death by signal."""
        self.process.send_signal(number)
        return self.process.wait(120)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def command(*arguments: str) -> Sequence[str]:
    return [sys.executable, "-m", "barnabas", *arguments]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=300, env={**ENVIRONMENT, "COLUMNS": "200"}
    )


def pid_of(node: Path) -> int:
    """Return the process that holds the lock of a node's directory."""
    inode = os.stat(node / "data" / ".lock").st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "POSIX" and words[5].endswith(f":{inode}"):
            return int(words[4])
    raise AssertionError(f"nobody holds the lock of {node}")
