"""A node with several log.dirs: Kafka's tools move a partition under a producer, and Apache Kafka opens the directories before and after.

Apache Kafka formats three directories and writes into them. Barnabas takes them over, moves a partition, and is killed. Apache Kafka reads
what is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apache_kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.conform.brokers import await_leaders
from tests.conform.same_directory.nodes import Barnabas, Kafka

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

NAMES = ("data", "disk-b", "disk-c")


class KafkaOnDisks(Kafka):
    """Apache Kafka with three directories; the metadata log is in the first."""

    def properties(self) -> dict[str, str]:
        roots = ",".join(str(self.folder / name) for name in NAMES)
        return {**super().properties(), "log.dirs": roots, "metadata.log.dir": str(self.data_dir)}


def values(servers: str) -> list[str]:
    consumer: Any = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", consumer_timeout_ms=3_000)
    consumer.assign([TopicPartition("t", 0)])
    end = consumer.end_offsets([TopicPartition("t", 0)])[TopicPartition("t", 0)]
    found: list[str] = []
    while len(found) < end:
        for records in consumer.poll(1_000).values():
            found += [record.value.decode() for record in records]
    consumer.close()
    return found


class Writing:
    """A producer that goes on until it is stopped; `written` has what was acknowledged, in order."""

    def __init__(self, servers: str) -> None:
        self.written: list[str] = []
        self._stop = threading.Event()
        self._producer: Any = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = f"moving-{number}-{'x' * 900}"
            self._producer.send("t", value.encode()).get(30)
            self.written.append(value)
            number += 1

    def end(self) -> list[str]:
        self._stop.set()
        self._thread.join()
        self._producer.close()
        return self.written


def home(folder: Path) -> list[str]:
    return [name for name in NAMES if (folder / name / "t-0").is_dir()]


def tool(servers: str, name: str, *args: str) -> str:
    done = apache_kafka.run_tool(name, "--bootstrap-server", servers, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def both(folder: Path, *topics: NewTopic) -> Iterator[tuple[KafkaOnDisks, Barnabas]]:
    """Yield Apache Kafka, which has started and leads topic t, and barnabas for the same directories and port; kill both at the end."""
    kafka = KafkaOnDisks(folder, heap="512m")
    barnabas = Barnabas(folder, port=kafka.port)
    try:
        kafka.start()
        admin: Any = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        admin.create_topics(list(topics))
        admin.close()
        await_leaders(kafka.bootstrap_servers, {"t": 1})
        yield kafka, barnabas
    finally:
        barnabas.kill()
        kafka.kill()


def move(servers: str, folder: Path, target: str) -> Path:
    """Begin a move of the partition with Kafka's tool; return its plan."""
    plan = folder / "plan.json"
    wanted = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(folder / target)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    tool(servers, "reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    return plan


def test_kafkas_tools_move_a_partition_and_apache_kafka_opens_the_directories(tmp_path: Path) -> None:
    with both(tmp_path, NewTopic("t", 1, 1), NewTopic("u", 3, 1)) as (kafka, barnabas):
        servers = kafka.bootstrap_servers
        producer: Any = KafkaProducer(bootstrap_servers=servers, acks="all")
        before = [f"{number}-{'k' * 1_000}" for number in range(5_000)]
        for value in before:
            producer.send("t", value.encode())
        producer.flush()
        producer.close()
        (source,) = home(tmp_path)
        kafka.stop()

        barnabas.start()
        writing = Writing(servers)
        target = next(name for name in NAMES if name != source)
        plan = move(servers, tmp_path, target)
        verified = tool(servers, "reassign-partitions", "--verify", "--reassignment-json-file", str(plan))
        assert "Reassignment of replica t-0-1 completed successfully." in verified
        described = json.loads(tool(servers, "log-dirs", "--describe", "--topic-list", "t").splitlines()[-1])
        there = {Path(each["logDir"]).name: each["partitions"] for each in described["brokers"][0]["logDirs"]}
        assert [name for name, parts in there.items() if parts] == [target]
        assert not there[target][0]["isFuture"]
        assert home(tmp_path) == [target]
        written = before + writing.end()
        assert len(written) > len(before)
        assert values(servers) == written
        barnabas.kill()

        kafka.start()
        await_leaders(servers, {"t": 1})
        assert values(servers) == written
        assert home(tmp_path) == [target]
        kafka.stop()


def futures(folder: Path) -> list[str]:
    return [name for name in NAMES if any((folder / name).glob("t-0.*-future"))]


def limit(servers: str, *change: str) -> None:
    tool(servers, "configs", "--alter", "--entity-type", "brokers", "--entity-name", "1", *change)


def begin_to_move(servers: str, folder: Path, target: str) -> None:
    """Begin a move that gets nowhere for a while."""
    limit(servers, "--add-config", "replica.alter.log.dirs.io.max.bytes.per.second=1")
    move(servers, folder, target)
    until(lambda: futures(folder) == [target])


def let_it_end(servers: str, folder: Path, target: str) -> None:
    limit(servers, "--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second")
    until(lambda: home(folder) == [target] and not futures(folder))


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def write(servers: str, name: str, count: int = 5_000) -> list[str]:
    producer: Any = KafkaProducer(bootstrap_servers=servers, acks="all")
    written = [f"{name}-{number}-{'k' * 1_000}" for number in range(count)]
    for value in written:
        producer.send("t", value.encode())
    producer.flush()
    producer.close()
    return written


def test_a_move_that_one_of_them_has_begun_is_ended_by_the_other(tmp_path: Path) -> None:
    """A killed barnabas leaves a copy to Apache Kafka, which ends the move; then the other way round."""
    with both(tmp_path, NewTopic("t", 1, 1)) as (kafka, barnabas):
        servers = kafka.bootstrap_servers
        written = write(servers, "first")
        (source,) = home(tmp_path)
        target = next(name for name in NAMES if name != source)
        kafka.stop()

        for mover, ender, old, new in ((barnabas, kafka, source, target), (kafka, barnabas, target, source)):
            if mover is barnabas:
                mover.start()
            begin_to_move(servers, tmp_path, new)
            written += write(servers, f"by {mover.name}", 100)
            mover.kill()
            assert (home(tmp_path), futures(tmp_path)) == ([old], [new])
            ender.start()
            await_leaders(servers, {"t": 1})
            let_it_end(servers, tmp_path, new)
            assert values(servers) == written


def command(servers: str, *words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "barnabas", "broker", "move", "1", *words, "-b", servers, "-o", "json"]
    return subprocess.run(call, capture_output=True, text=True, timeout=120)


def test_the_own_command_moves_replicas_of_both_programs(tmp_path: Path) -> None:
    """`barnabas broker move` with a limit, under a producer; a second one ends what was begun; then a directory is emptied."""
    with both(tmp_path, NewTopic("t", 1, 1), NewTopic("u", 3, 1)) as (kafka, barnabas):
        servers = kafka.bootstrap_servers
        written = write(servers, "first")
        for mover in (kafka, barnabas):
            if mover is barnabas:
                kafka.stop()
                barnabas.start()
                await_leaders(servers, {"t": 1})
            (source,) = home(tmp_path)
            target, third = (name for name in NAMES if name != source)
            writing = Writing(servers)
            done = command(servers, "t:0", "--to", str(tmp_path / target), "--throttle", "20MB")
            written += writing.end()
            assert (done.returncode, done.stderr) == (0, "")
            (moved,) = json.loads(done.stdout)
            assert (moved["topic"], moved["new_directory"], moved["status"]) == ("t", str(tmp_path / target), "moved")
            assert (home(tmp_path), futures(tmp_path)) == ([target], [])
            described = tool(servers, "configs", "--describe", "--entity-type", "brokers", "--entity-name", "1")
            assert "replica.alter.log.dirs.io.max.bytes.per.second" not in described

            begin_to_move(servers, tmp_path, third)
            ended = command(servers, "t:0", "--to", str(tmp_path / target))
            assert (ended.returncode, ended.stderr) == (0, "")
            assert json.loads(ended.stdout)[0]["status"] == "move cancelled"
            until(lambda: not futures(tmp_path))
            limit(servers, "--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second")
            assert home(tmp_path) == [target]

            emptied = command(servers, "--from", str(tmp_path / target), "--to", str(tmp_path / third))
            assert (emptied.returncode, emptied.stderr) == (0, "")
            assert not [each for each in (tmp_path / target).glob("[tu]-*") if not each.name.endswith("-delete")]
            assert values(servers) == written
        barnabas.kill()
