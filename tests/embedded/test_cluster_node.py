"""The program of a node: it ends with the process of its cluster, also when it stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = """
import sys, time
import barnabas

cluster = barnabas.Cluster({brokers}).start()
if {paused}:
    cluster.pause({paused})
print(cluster.data_dir, *(each._process.pid for each in cluster._processes.values()), flush=True)
sys.stdin.read()
"""


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("brokers", "paused"), [(1, 0), (3, 2)])
def test_the_nodes_of_a_process_that_is_killed_end(brokers: int, paused: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD.format(brokers=brokers, paused=paused)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        folder, *pids = child.stdout.readline().split()
        assert len(pids) == brokers
        assert all(is_alive(int(pid)) for pid in pids)
        child.send_signal(signal.SIGKILL)
        child.wait()
    deadline = time.monotonic() + 60
    while any(is_alive(int(pid)) for pid in pids) or os.path.exists(folder):
        assert time.monotonic() < deadline, (pids, folder)
