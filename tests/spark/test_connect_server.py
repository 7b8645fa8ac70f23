"""A Spark Connect server: source, sink and table writers for a client without Java, each record once though the server is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

import barnabas
from tests.spark.connect_client import BATCH, COPY, FIRST, SECOND
from tests.spark.session import SHORT_LIVED, Topics
from tests.spark.tables.appending import open_table, rows_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.xdist_group("connect"),
    pytest.mark.timeout(900),
]

ROOT = Path(__file__).parents[2]


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server as its page says; yield its address, and kill it."""
    script = Path(pyspark.__path__[0]) / "sbin" / "start-connect-server.sh"
    settings = ("spark.connect.grpc.binding.port=0", "spark.ui.enabled=false")
    conf = [word for each in settings for word in ("--conf", each)]
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOG_DIR": str(folder)}
    log = folder / "server.log"
    with open(log, "wb") as output:
        server = subprocess.Popen(
            ["bash", str(script), "--wait", "--master", "local[2]", *conf],
            cwd=folder, env=environment | SHORT_LIVED, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield f"sc://localhost:{_port_of(server, log)}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _port_of(server: subprocess.Popen[bytes], log: Path) -> str:
    deadline_s = time.monotonic() + 180
    while not (found := re.search(r"Connect server started at: .*:(\d+)\n", said := log.read_text(errors="replace"))):
        assert server.poll() is None, said[-3000:]
        assert time.monotonic() < deadline_s, said[-3000:]
        time.sleep(0.1)
    return found[1]


def client(step: str, *words: str) -> str:
    command = [sys.executable, "-m", "tests.spark.connect_client", step, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def committed(servers: str, topic: str, count: int) -> Counter[str]:
    """Return the values that a consumer of committed records reads until it is at each partition's end."""
    from confluent_kafka import Consumer, KafkaError

    settings = {
        "bootstrap.servers": servers, "group.id": "count", "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "enable.partition.eof": True,
    }  # fmt: skip
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: Counter[str] = Counter()
    ends: set[int] = set()
    while len(ends) < 2:
        message = consumer.poll(60)
        assert message is not None, f"{sum(values.values())} of {count}"
        if message.error() is None:
            values[message.value().decode()] += 1
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ends.add(message.partition())
    consumer.close()
    return values


def test_each_record_once_through_a_server_that_is_killed(tmp_path: Path) -> None:
    with barnabas.Broker(data_dir=tmp_path / "broker") as broker:
        servers = broker.bootstrap_servers
        with connect_server(tmp_path) as url:
            said = client("batch", url, servers, str(tmp_path))
            assert said == f"{{'sum(n)': {sum(range(FIRST))}, 'count(1)': {FIRST}}}\n"
            command = [sys.executable, "-m", "tests.spark.connect_client", "until-killed", url, servers, str(tmp_path)]
            running = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            assert running.stdout is not None
            if running.stdout.readline() != "in the middle\n":
                raise AssertionError(running.communicate()[1][-3000:])
        running.kill()
        running.communicate()
        Topics(servers).values(BATCH, [str(n) for n in range(FIRST, FIRST + SECOND)], 1)
        with connect_server(tmp_path) as url:
            client("to-the-end", url, servers, str(tmp_path))
            said = client("without-an-id", url, servers, str(tmp_path))
        once = {str(n): 1 for n in range(FIRST + SECOND)}
        assert committed(servers, COPY, len(once)) == once
        for kind in ("delta", "iceberg"):
            found = rows_of(open_table(kind, tmp_path))["value"].to_pylist()
            assert Counter(value.decode() for value in found) == once, kind
        assert "Spark Connect does not name it: give the writer a query_id" in said
        assert not list((tmp_path / "unnamed").rglob("*.parquet"))
