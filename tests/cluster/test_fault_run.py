"""The script of faults ends when it is asked to, and leaves no process, namespace or mount behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.slow]


def commands_in(folder: Path) -> list[str]:
    """Return the commands of the processes that name a folder, but for the script's own."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # It has ended.
            continue
        if any(str(folder) in word for word in words) and "tests.cluster.fault_run" not in words:
            found.append(" ".join(words))
    return found


def namespaces(pid: int) -> list[str]:
    """Return the network namespaces of a run, which are named after its process id."""
    folder = Path("/run/netns")
    return [each.name for each in folder.glob(f"bn{pid % 62_500}-*")] if folder.exists() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_and_all_that_it_started(number: signal.Signals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.fault_run", "--minutes", "5", "--folder", str(tmp_path / "run")],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def nodes_run() -> bool:
        assert run.poll() is None, log.read_text()
        started = [each for each in commands_in(tmp_path / "run") if "barnabas.main start" in each]
        return len(started) == 3

    try:
        wait_for("three nodes run", nodes_run)
        run.send_signal(number)
        assert run.wait(60) == 128 + number, log.read_text()
    finally:
        run.kill()
        run.wait()
    assert commands_in(tmp_path / "run") == []
    assert namespaces(run.pid) == []
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
