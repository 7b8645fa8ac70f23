"""A broker as a command: started, killed with all it started, killed while it starts, and told when it ends by itself."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from apache_kafka import free_port

from barnabas.verify.faults import BrokerFailed, Killer, LocalBroker
from barnabas.verify.history import NEMESIS, Outcome
from barnabas.verify.recorder import Recorder

PATIENCE_SECONDS = 60


def local(folder: Path) -> LocalBroker:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "barnabas.main", "start", "--data-dir", str(folder / "data"), "--listen", address]
    return LocalBroker(command, address, folder / "broker.log")


@pytest.mark.slow
def test_a_broker_comes_and_goes(tmp_path: Path) -> None:
    broker = local(tmp_path)
    broker.start()
    assert broker.process is not None
    first = broker.process.pid
    broker.check()
    broker.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    broker.start()  # on what the kill left
    broker.stop()
    assert broker.process is None
    broker.stop()  # again, for nothing


def test_one_that_ends_by_itself(tmp_path: Path) -> None:
    broker = LocalBroker([sys.executable, "-c", "raise SystemExit(3)"], "127.0.0.1:1", tmp_path / "log")
    with pytest.raises(BrokerFailed, match=r"code 3; .*log says why"):
        broker.start()


def test_a_kill_takes_the_whole_group(tmp_path: Path) -> None:
    """A script that starts the broker is what `--broker-command` often names."""
    note = tmp_path / "pid"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_CHILD.format(note=str(note))!r}])"
    broker = LocalBroker([sys.executable, "-c", script], "127.0.0.1:1", tmp_path / "log")
    broker.launch()
    while not note.exists() or not note.read_text():
        broker.check()
    broker.kill()
    pid = int(note.read_text())
    # A signal that was sent is not a process that has ended.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while running(pid):
        assert time.monotonic() < deadline


def running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


_CHILD = "import os, time; open({note!r}, 'w').write(str(os.getpid())); time.sleep(600)"


class Paper(LocalBroker):
    """Writes down what is done to it, and stops everything after some kills."""

    def __init__(self, stopping: threading.Event) -> None:
        super().__init__([], "", Path())
        self.done: list[str] = []
        self.stopping = stopping

    def start(self) -> None:
        self.done.append("start")

    def launch(self) -> None:
        self.done.append("launch")

    def kill(self) -> None:
        self.done.append("kill")
        if self.done.count("kill") >= 40:
            self.stopping.set()


def test_the_killer_kills_starts_too() -> None:
    stopping = threading.Event()
    broker = Paper(stopping)
    recorder = Recorder({})
    killer = Killer(broker, recorder, 0.0001, random.Random(1), stopping)
    killer.run()
    assert killer.failure is None
    assert broker.done[-1] == "start"  # it leaves a running broker
    counts = Counter(broker.done)
    assert counts["kill"] == counts["start"] + counts["launch"] >= 40
    assert counts["launch"] > 2
    assert recorder.counts["kill", Outcome.OK] == counts["kill"]
    assert {op.process for op in recorder.history()} == {NEMESIS}
