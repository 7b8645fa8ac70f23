"""The child process that compacts."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.log.cleaner_process import Pace

WAIT_SECONDS = 120
BROKER = """
import sys, threading
from pathlib import Path
from barnabas.log.cleaner_worker import ProcessWorker
from tests.log.test_cleaner_worker import a_task

worker = ProcessWorker(lambda work, done: threading.Thread(target=work, daemon=True).start())
worker.start(a_task(Path(sys.argv[1]), max_bytes_per_second=1.0), print)
while worker.pid is None:
    pass
print(worker.pid, flush=True)
threading.Event().wait()
"""


def exited(pid: int) -> bool:
    """Waits until a process that is not our child has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], WAIT_SECONDS)[0])
    finally:
        os.close(descriptor)


@pytest.mark.slow
def test_the_child_goes_with_its_broker(tmp_path: Path) -> None:
    broker = subprocess.Popen(
        [sys.executable, "-c", BROKER, str(tmp_path / "orders-0")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)},
    )
    assert broker.stdout is not None
    try:
        pid = int(broker.stdout.readline())
        os.kill(pid, 0)
    finally:
        broker.kill()
        broker.wait()
        broker.stdout.close()
    assert exited(pid)


def test_the_child_is_light() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, barnabas.log.cleaner_process; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "barnabas.log.cleaner" in loaded
    assert not {
        "asyncio",
        "uvloop",
        "barnabas.node",
        "barnabas.config",
        "barnabas.api",
        "barnabas.protocol.messages",
    } & set(loaded)


def test_the_pace_keeps_the_average() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1000.0, seconds=lambda: now[0], sleep=sleep)
    pace(500)
    pace(500)
    now[0] += 10
    pace(1000)
    assert slept == [0.5, 0.5]
    pace(20_000)
    assert now[0] == pytest.approx(22.0)
