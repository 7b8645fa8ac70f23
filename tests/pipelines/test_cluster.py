"""The continuous form on Spark standalone: a master and two workers, of which one loses its executor in mid-batch."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
import run_pipelines
from apache_kafka import free_port
from run_pipelines import Shop

import barnabas
from barnabas.demo.answers import totals
from barnabas.demo.feeder import FIRST_LINES, read_lines
from barnabas.demo.shop import create_topics
from tests.pipelines.test_continuous import FEED, LINES, Running, rows, table
from tests.spark.session import SPARK

pytestmark = [
    *(mark for mark in SPARK if mark.name != "timeout"),
    pytest.mark.timeout(7000),
    pytest.mark.conform,
    pytest.mark.long,
]
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A master and two workers of one core each, on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        worker = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(folder / "work"))
        self.workers = [self._start("worker.Worker", *worker, self.master) for _ in range(2)]

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

    def kill_an_executor(self) -> None:
        """Kill the executor of the first worker; the worker starts another."""
        (executor,) = (pid for pid in _children(self.workers[0].pid) if "ExecutorBackend" in _command_line(pid))
        os.kill(executor, signal.SIGKILL)

    def stop(self) -> None:
        for process in self._started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The tables after an executor was killed while lines came in."""
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder)
    try:
        with barnabas.Broker() as broker:
            create_topics(broker.bootstrap_servers)
            shop = Shop(folder / "shop", broker.bootstrap_servers)
            with run_pipelines.fed_in_two_parts(shop.servers, FEED) as rest:
                running = Running(shop, "--conf", "spark.executor.memory=600m", master=cluster.master)
                running.wait_for_orders(FIRST_LINES - 1)
                rest.set()
                running.wait_for_a_batch()
                cluster.kill_an_executor()
                running.wait_for_orders(LINES - 1)
            running.kill()
            yield shop
    finally:
        cluster.stop()


def test_every_record_is_there_once(shop):
    places = Counter((row["partition"], row["offset"]) for row in table(shop, "checked_orders", "partition", "offset"))
    assert len(places) == rows(shop, "checked_orders") == LINES
    clean = [row["amount"] for row in table(shop, "checked_orders", "amount", "reason") if row["reason"] is None]
    assert sum(clean) * 1000 == totals(read_lines(FEED)).revenue_thousandths
