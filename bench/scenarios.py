"""What is measured. Each scenario takes a running broker (or a way to start one) and returns named figures.

A figure's name ends in its unit; `HIGHER` lists the few of which more is better, for the reader of the table.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apache_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conform.brokers import BarnabasProcess, KafkaProcess

from bench.bare_sockets import (
    commit_requests,
    connect,
    find_coordinator_frame,
    percentile,
    produce_frame,
    produce_requests,
)
from bench.consumer_groups import beat, members, settle
from bench.process_cost import Cost, resident_megabytes

Figures = dict[str, float]
Broker = BarnabasProcess | KafkaProcess
HIGHER = ("MB/s", "records/s", "requests/s")


@dataclass
class Running:
    """A started broker and what a scenario needs of it."""

    name: str
    broker: Broker
    pid: int
    admin: AdminClient = field(init=False)
    topics: int = 0

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})

    @contextmanager
    def topic(self, partitions: int = 6) -> Iterator[str]:
        self.topics += 1
        name = f"bench-{self.topics}"
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)
        wait_until_writable(self.broker.port, name, range(partitions))
        try:
            yield name
        finally:
            self.admin.delete_topics([name])[name].result(60)


def pid_of(broker: Broker) -> int:
    assert broker.process is not None
    return broker.process.pid


def start(name: str, folder: Path) -> Running:
    broker: Broker = BarnabasProcess(folder) if name == "barnabas" else KafkaProcess(folder)
    broker.start()
    return Running(name, broker, pid_of(broker))


def wait_until_writable(port: int, topic: str, partitions: range) -> None:
    """A leader can be named before its log is made, so write one record to each partition."""
    with connect(port) as connection:
        for partition in partitions:
            frame = produce_frame(topic, partition, b"x")
            while True:
                connection.sendall(frame)
                answer = connection.recv(4096)
                at = 8 + 4 + 2 + len(topic) + 4 + 4
                if answer[at : at + 2] == b"\0\0":
                    break
                time.sleep(0.02)


def librdkafka(*args: object) -> float:
    """Run a load; return the seconds that it took."""
    return librdkafka_figures(*args)["seconds"]


def librdkafka_figures(*args: object) -> Figures:
    """Run a load in a process of its own; return the figures that it prints."""
    command = [sys.executable, "-m", "bench.librdkafka_load", *map(str, args)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    found: Figures = json.loads(result.stdout.splitlines()[-1])
    return found


def java_producer(running: Running, topic: str, count: int, size: int, batch: int, acks: str) -> float:
    """Seconds the official tool says the work took."""
    done = apache_kafka.run_tool(
        "producer-perf", "--topic", topic, "--num-records", str(count), "--record-size", str(size), "--throughput", "-1",
        "--command-property", f"bootstrap.servers={running.broker.bootstrap_servers}", f"acks={acks}",
        f"batch.size={batch}", "linger.ms=5", timeout=300)  # fmt: skip
    found = re.findall(r"([\d.]+) records/sec", done.stdout)
    if not found:
        raise RuntimeError(done.stdout[-1000:] + done.stderr[-1000:])
    return count / float(found[-1])


# --- scenarios on a running broker -----------------------------------------------------------------------------------


def produce(running: Running, client: str, size: int, batch: int, acks: str, megabytes: int) -> Figures:
    count = megabytes * 1_000_000 // size
    with running.topic() as topic, Cost(running.pid) as cost:
        if client == "librdkafka":
            seconds = librdkafka("produce", running.broker.bootstrap_servers, topic, count, size, batch, acks)
        else:
            seconds = java_producer(running, topic, count, size, batch, acks)
    gigabytes = count * size / 1e9
    return {"MB/s": count * size / 1e6 / seconds, "broker CPU s/GB": cost.cpu / gigabytes}


def consume(running: Running, size: int, megabytes: int, reads: int = 3) -> Figures:
    count = megabytes * 1_000_000 // size
    best: list[tuple[float, float]] = []
    with running.topic() as topic:
        librdkafka("produce", running.broker.bootstrap_servers, topic, count, size, 131_072, "1")
        for _ in range(reads):
            with Cost(running.pid) as cost:
                seconds = librdkafka("consume", running.broker.bootstrap_servers, topic, count)
            best.append((seconds, cost.cpu))
    seconds, cpu = sorted(best)[len(best) // 2]
    return {"MB/s": count * size / 1e6 / seconds, "broker CPU s/GB": cpu / (count * size / 1e9)}


def transactions(running: Running, size: int, batch: int, per_transaction: int, megabytes: int) -> Figures:
    """A transactional producer, and a read_committed consumer behind it; every tenth transaction is aborted."""
    # A whole number of transactions, and of tens of them but for the last, which is committed.
    count = megabytes * 1_000_000 // size // per_transaction * per_transaction
    ended = count // per_transaction
    committed = count - (ended - 1) // 10 * per_transaction
    with running.topic() as topic:
        address = running.broker.bootstrap_servers
        with Cost(running.pid) as produced:
            seconds = librdkafka("transact", address, topic, count, size, batch, per_transaction, 10)
        with Cost(running.pid) as consumed:
            read_seconds = librdkafka("consume", address, topic, committed)
    gigabytes = count * size / 1e9
    return {
        "produced MB/s": count * size / 1e6 / seconds,
        "produce: broker CPU s/GB": produced.cpu / gigabytes,
        "transactions/s": ended / seconds,
        "consumed MB/s": committed * size / 1e6 / read_seconds,
        "consume: broker CPU s/GB": consumed.cpu / gigabytes,
    }


def requests(running: Running, connections: int, seconds: float) -> Figures:
    with running.topic() as topic:
        produce_requests(running.broker.port, topic, connections, seconds / 2)
        with Cost(running.pid) as cost:
            answered, took, latencies = produce_requests(running.broker.port, topic, connections, seconds)
    return request_figures(cost, answered, took, latencies)


def commits(running: Running, groups: int, seconds: float) -> Figures:
    """Offset commits of many groups at once."""
    with running.topic() as topic:
        wait_for_coordinator(running.broker.port)
        commit_requests(running.broker.port, topic, groups, seconds / 2)
        with Cost(running.pid) as cost:
            answered, took, latencies = commit_requests(running.broker.port, topic, groups, seconds)
    return request_figures(cost, answered, took, latencies)


def consumer_groups(running: Running, count: int, seconds: float) -> Figures:
    """Consumer groups of one member each: until each owns its six partitions, then a heartbeat of each at once, again and again."""
    wait_for_coordinator(running.broker.port)
    # The names are new in each run, so that every group is.
    groups = [f"bench-{running.topics}-{number}" for number in range(count)]
    with running.topic(6) as topic, members(running.broker.port, topic, groups) as who:
        before = resident_megabytes(running.pid)
        with Cost(running.pid) as joined:
            settle(who, 6)
        added = resident_megabytes(running.pid) - before
        latencies: list[float] = []
        with Cost(running.pid) as cost:
            began = time.perf_counter()
            while time.perf_counter() - began < seconds:
                latencies += beat(who)
            took = time.perf_counter() - began
    figures = request_figures(cost, len(latencies), took, sorted(latencies))
    return {"settled s": joined.wall, "settled: broker CPU s": joined.cpu, "added MB": max(added, 0.1), **figures}


def large_group(running: Running, count: int) -> Figures:
    """One consumer group whose members all come at once, a partition for each."""
    wait_for_coordinator(running.broker.port)
    group = f"bench-large-{running.topics}"
    with (
        running.topic(count) as topic,
        members(running.broker.port, topic, [group] * count) as who,
        Cost(running.pid) as cost,
    ):
        settle(who, 1)
    return {"settled s": cost.wall, "broker CPU s": cost.cpu}


def wait_for_coordinator(port: int) -> None:
    """Waits until groups have a coordinator that has loaded: the first question creates its topic."""
    while True:
        with connect(port) as connection:
            connection.sendall(find_coordinator_frame("bench-0"))
            if connection.recv(4096)[8:10] == b"\0\0":
                time.sleep(1)
                return
        time.sleep(0.1)


def request_figures(cost: Cost, answered: int, took: float, latencies: list[float]) -> Figures:
    return {
        "requests/s": answered / took,
        "broker CPU µs": cost.cpu / answered * 1e6,
        "p50 µs": percentile(latencies, 0.5),
        "p99 µs": percentile(latencies, 0.99),
        "p99.9 µs": percentile(latencies, 0.999),
    }


# --- scenarios that start a broker of their own ----------------------------------------------------------------------


def start_up(name: str) -> Figures:
    """Process start to the first answered Metadata request, a formatted directory; then memory when idle."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = start(name, Path(folder))
        running.broker.stop()
        broker = running.broker
        began = time.perf_counter()
        broker.process = launch(broker)
        while not apache_kafka.answers(broker.port):
            time.sleep(0.002)
        ready = time.perf_counter() - began
        time.sleep(3)
        idle = resident_megabytes(pid_of(broker))
        began = time.perf_counter()
        broker.stop()
        return {"start s": ready, "idle MB": idle, "stop s": time.perf_counter() - began}


def launch(broker: Broker) -> subprocess.Popen[bytes]:
    """Start the process without waiting for what it prints, so that both are timed by their first answer."""
    if isinstance(broker, KafkaProcess):
        config = str(broker.folder / "server.properties")
        command = apache_kafka.java_command("kafka.Kafka", config, heap="1g", log4j="server-log4j2.properties")
    else:
        command = [str(Path(sys.executable).with_name("barnabas")), "start", "--data-dir", str(broker.data_dir)]
        command += ["--listen", broker.bootstrap_servers]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def partitions(name: str, count: int) -> Figures:
    """Create `count` partitions in four topics, write to each, look at the memory; then stop, and start again."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = start(name, Path(folder))
        try:
            before = resident_megabytes(running.pid)
            began = time.perf_counter()
            names = [f"many-{index}" for index in range(4)]
            for topic in names:
                # One request each: a request may cause at most ten thousand records.
                running.admin.create_topics([NewTopic(topic, count // 4, 1)])[topic].result(120)
            for topic in names:
                wait_until_writable(running.broker.port, topic, range(count // 4))
            writable = time.perf_counter() - began
            time.sleep(3)
            after = resident_megabytes(running.pid)
            began = time.perf_counter()
            process = running.broker.process
            assert process is not None
            process.terminate()
            process.wait(300)
            stopped = time.perf_counter() - began
            began = time.perf_counter()
            running.broker.process = launch(running.broker)
            while not apache_kafka.answers(running.broker.port):
                time.sleep(0.01)
            wait_until_writable(running.broker.port, names[-1], range(count // 4 - 1, count // 4))
            started = time.perf_counter() - began
            return {
                "created and writable s": writable,
                "MB": after,
                "added MB": max(after - before, 0.1),
                "stop s": stopped,
                "start to first write s": started,
            }
        finally:
            running.broker.kill()


@dataclass(frozen=True)
class Scenario:
    """A row of the table: a name and how to measure it on one of the two."""

    name: str
    run: Callable[[Running], Figures] | None = None
    run_alone: Callable[[str], Figures] | None = None


def catalogue(megabytes: int, seconds: float) -> list[Scenario]:
    rows = [Scenario("start, stop, idle memory", run_alone=start_up)]
    rows += [Scenario(f"{n} partitions", run_alone=lambda name, n=n: partitions(name, n)) for n in (1000, 4000, 10_000)]  # type: ignore[misc]
    for size in (100, 1000):
        for batch in (16_384, 131_072):
            for acks in ("1", "all"):
                amount = megabytes if size == 1000 else megabytes // 5
                for client in ("librdkafka", "Java"):
                    title = f"produce {size} B, {batch // 1024} KB batches, acks={acks}, {client}"
                    rows.append(
                        Scenario(
                            title, lambda r, c=client, s=size, b=batch, a=acks, m=amount: produce(r, c, s, b, a, m)
                        )
                    )  # type: ignore[misc]
    for size in (100, 1000):
        amount = megabytes if size == 1000 else megabytes // 5
        rows.append(Scenario(f"consume {size} B, librdkafka", lambda r, s=size, m=amount: consume(r, s, m)))  # type: ignore[misc]
    for per_transaction in (1000, 10_000):
        title = f"transactions of {per_transaction} records of 1000 B, 128 KB batches, librdkafka"
        rows.append(Scenario(title, lambda r, n=per_transaction: transactions(r, 1000, 131_072, n, megabytes)))  # type: ignore[misc]
    rows.append(Scenario("offset commits, 1000 groups, a connection each", lambda r: commits(r, 1000, seconds)))
    rows.append(Scenario("1000 consumer groups of one member", lambda r: consumer_groups(r, 1000, seconds)))
    rows.append(Scenario("one consumer group of 1000 members", lambda r: large_group(r, 1000)))
    for connections in (1, 100, 1000):
        title = f"one-record requests, acks=all, {connections} connections"
        rows.append(Scenario(title, lambda r, c=connections: requests(r, c, seconds)))  # type: ignore[misc]
    return rows
