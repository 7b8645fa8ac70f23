"""`barnabas start --nodes N` as processes."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.client.properties import read_properties
from barnabas.security.client_security import client_security
from tests.process.process import ENVIRONMENT, command, pid_of, run

PATIENCE_SECONDS = 60

pytestmark = pytest.mark.slow


class Cluster:
    """A started cluster.

    Attributes:
        lines: what it has printed so far.
        addresses: as in the line `barnabas ready on`.
    """

    def __init__(self, folder: Path, nodes: int, *arguments: str) -> None:
        words = ["--nodes", str(nodes), "--data-dir", str(folder), "--log-level", "warning", *arguments]
        self.process = subprocess.Popen(
            command("start", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            text=True,
        )
        self.lines: list[str] = []
        self.addresses = self.until(r"barnabas ready on (\S+)\n")[1]

    def until(self, pattern: str) -> re.Match[str]:
        """Read standard output up to a line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.fullmatch(pattern, line):
                return found
        assert self.process.stderr is not None
        raise AssertionError((self.lines, self.process.stderr.read()))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The nodes notice that their supervisor has ended.
        self.process.kill()
        self.process.communicate()


def write(addresses: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": addresses, "enable.idempotence": True})
    producer.produce("orders", value, partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def create(addresses: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": addresses})
    topic = NewTopic("orders", num_partitions=3, replication_factor=replicas)
    admin.create_topics([topic], operation_timeout=PATIENCE_SECONDS)["orders"].result(PATIENCE_SECONDS)


def values(addresses: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": addresses, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        if message.error() is None:
            found.append((message.value() or b"").decode())
    consumer.close()
    return found


def assert_stopped_in_order(folder: Path, nodes: int) -> None:
    """All nodes have left while there was a controller, although all stopped together."""
    for node in (folder / f"node-{number}" for number in range(1, nodes + 1)):
        assert json.loads((node / "data" / ".kafka_cleanshutdown").read_text())["brokerEpoch"] > 0
        assert "without handing over" not in (node / "node.log").read_text()


def test_a_second_start_serves_the_same_data(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 1, "--port", "0") as cluster:
        assert cluster.lines[0] == f"node 1 (broker and controller) on {cluster.addresses}, files in {folder}/node-1\n"
        assert cluster.addresses.startswith("127.0.0.1:")
        create(cluster.addresses, 1)
        write(cluster.addresses, "one")
        assert cluster.stop(signal.SIGINT) == 0
    assert (folder / "node-1" / "data" / ".kafka_cleanshutdown").exists()
    with Cluster(folder, 1, "--set", "num.partitions=7", "--metrics-listen", "127.0.0.1:0") as again:
        assert again.addresses == cluster.addresses
        where = re.search(r", metrics on (\S+), files in ", again.lines[0])
        assert where is not None
        with urlopen(f"http://{where[1]}/metrics", timeout=PATIENCE_SECONDS) as answer:
            assert b"\nkafka_brokers 1\n" in answer.read()
        write(again.addresses, "two")
        assert values(again.addresses, 2) == ["one", "two"]
        topic = AdminClient({"bootstrap.servers": again.addresses}).list_topics("made", timeout=PATIENCE_SECONDS)
        assert len(topic.topics["made"].partitions) == 7
        assert again.stop() == 0


def test_a_folder_that_others_can_read_is_named(tmp_path: Path) -> None:
    """One that an earlier release has made: it stays as it is."""
    folder = tmp_path / "cluster"
    with Cluster(folder, 1, "--port", "0") as cluster:
        assert cluster.stop() == 0
        assert cluster.process.stderr is not None
        assert cluster.process.stderr.read() == ""
    for path, mode in ((folder, 0o755), (folder / "node-1", 0o755), (folder / "node-1" / "node.log", 0o644)):
        path.chmod(mode)
    with Cluster(folder, 1) as cluster:
        assert cluster.stop() == 0
        assert cluster.process.stderr is not None
        assert (
            f"WARNING barnabas.directory.start_report: {folder} can be read by every user"
            in cluster.process.stderr.read()
        )


def test_three_nodes_go_on_when_one_is_killed_keep_what_was_written_and_become_four(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    # The killed node is missed soon.
    sessions = ("--set", "broker.session.timeout.ms=2000", "--set", "broker.heartbeat.interval.ms=300")
    with Cluster(folder, 3, "--port", "0", "--restart", *sessions) as cluster:
        create(cluster.addresses, 3)
        write(cluster.addresses, "one")
        os.kill(pid_of(folder / "node-1"), signal.SIGKILL)
        write(cluster.addresses, "two")
        cluster.until(r"node 1 \(broker and controller\) on .*\n")
        write(cluster.addresses, "three")
        assert cluster.stop() == 0
        assert cluster.process.stderr is not None
        assert "error: node 1 was killed by SIGKILL (starting it again)\n" in cluster.process.stderr.read()
    assert_stopped_in_order(folder, 3)
    # The next start may have more nodes.
    with Cluster(folder, 4, *sessions) as cluster:
        assert values(cluster.addresses, 3) == ["one", "two", "three"]
        metadata = AdminClient({"bootstrap.servers": cluster.addresses}).list_topics(timeout=PATIENCE_SECONDS)
        assert sorted(metadata.brokers) == [1, 2, 3, 4]
        assert cluster.stop() == 0


@pytest.mark.long
def test_a_secured_cluster_stays_secured_and_grows(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 3, "--port", "0", "--secure-dev") as cluster:
        client = cluster.until(r"clients need --command-config (\S+)\n")[1]
        settings = librdkafka_security(client_security(read_properties(client)))
        producer = Producer({"bootstrap.servers": cluster.addresses, "enable.idempotence": True, **settings})
        producer.produce("orders", "one")
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert cluster.stop() == 0
    assert_stopped_in_order(folder, 3)
    text = Path(client).read_text()
    with Cluster(folder, 4, "--port", "0") as cluster:
        assert Path(client).read_text() == text
        metadata = AdminClient({"bootstrap.servers": cluster.addresses, **settings}).list_topics(
            timeout=PATIENCE_SECONDS
        )
        assert sorted(metadata.brokers) == [1, 2, 3, 4]
        assert "orders" in metadata.topics
        for file in (*folder.glob("node-*/server.properties"), *folder.glob("node-*/node.pem")):
            assert file.stat().st_mode & 0o777 == 0o600
        assert cluster.stop() == 0
    for log in folder.glob("node-*/node.log"):
        assert "password" not in log.read_text()


def test_the_nodes_of_a_killed_supervisor_stop(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 1, "--port", "0") as cluster:
        node = os.pidfd_open(pid_of(folder / "node-1"))
        cluster.stop(signal.SIGKILL)
        assert select.select([node], [], [], PATIENCE_SECONDS)[0] == [node]
    assert (folder / "node-1" / "data" / ".kafka_cleanshutdown").exists()


def test_a_folder_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 1, "--port", "0") as cluster:
        for nodes in ("1", "2"):
            again = run("start", "--nodes", nodes, "--data-dir", str(folder))
            resize = "" if nodes == "1" else f", resize it: `barnabas cluster resize 2 --data-dir {folder}`"
            in_use = f"error: {folder} is in use by another cluster (stop it{resize}, or pass another --data-dir)\n"
            assert (again.returncode, again.stderr) == (1, in_use)
        assert cluster.stop() == 0
    single = run("start", "--data-dir", str(folder))
    assert single.stderr.splitlines()[-1].startswith(f"error: {folder} holds a cluster on this machine")


def test_a_node_that_cannot_listen_ends_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 1, "--port", "0") as cluster:
        assert cluster.stop() == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        file = folder / "node-1" / "server.properties"
        file.write_text(re.sub(r"PLAINTEXT://127.0.0.1:\d+", f"PLAINTEXT://127.0.0.1:{port}", file.read_text()))
        refused = run("start", "--nodes", "1", "--data-dir", str(folder))
    assert (refused.returncode, refused.stdout) == (1, "")
    error = f"error: node 1 does not start: cannot listen on 127.0.0.1:{port}: Address already in use"
    assert refused.stderr.splitlines()[-1].startswith(error)
