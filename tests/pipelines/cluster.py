"""Spark standalone on loopback: a master and two workers, whose executors a test kills."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pyspark
from apache_kafka import free_port

_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WORKERS = 2


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        worker = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(folder / "work"))
        self.workers = [self._start("worker.Worker", *worker, self.master) for _ in range(WORKERS)]

    def __repr__(self) -> str:
        return f"<Cluster master={self.master} workers={len(self.workers)}>"

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL,
        }
        with open(self._folder / "cluster.log", "ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._started.append(process)
        return process

    def kill_an_executor(self, worker: int = 0) -> bool:
        """Kill the executors of a worker; it starts another. Return whether there was one."""
        executors = [pid for pid in _children(self.workers[worker].pid) if "ExecutorBackend" in _command_line(pid)]
        for executor in executors:
            os.kill(executor, signal.SIGKILL)
        return bool(executors)

    def stop(self) -> None:
        for process in self._started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return ""


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]
