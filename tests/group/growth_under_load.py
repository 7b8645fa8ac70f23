"""A topic grows under load while its broker, the command and the readers are killed; is each key read in order?

    python -m tests.group.growth_under_load [--runs 1] [--nodes 1] [--plain] [--seed 1]

An idempotent producer of librdkafka sends numbered records for 30 keys, and learns of new partitions within a second. Three groups
of two processes each read them (`ordered_reader`): range and cooperative-sticky of the classic protocol, and KIP-848's. They are slower
than a backlog that is sent first, so the old partitions are not finished when the new ones get records.

The topic grows from 2 to 6 partitions. On the way the command is killed twice and runs again, the broker is killed while producers
settle and once more while readers wait at the fences, and one reader of each group is killed and replaced. At the end each group has
processed each acknowledged record. Without redeliveries, no key's numbers ever step back.

The broker that is killed coordinates the group of the new protocol; `--nodes 3` has others that take over.

`--plain` grows without an order, and kills nothing: it shows that the judge sees disorder.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer

from barnabas.cli.growth_words import held_from
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition, result, results
from barnabas.client.topic_growth import list_growth
from barnabas.protocol.ordered_growth import Generation
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_for
from tests.cluster.worker import Worker
from tests.process.process import ENVIRONMENT, command

TOPIC, BEFORE, AFTER, KEYS = "orders", 2, 6, 30
KINDS = ("range", "cooperative-sticky", "consumer")
BACKLOG, AFTERWARDS, PER_SECOND = 14_000, 2_000, 400
MESSAGE_TIMEOUT_MS = 12_000
SETTLE = "14s"
"""A second until the producer knows the new number, and its message timeout."""
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "6000",
}
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Outcome(NamedTuple):
    """What one group has done.

    Attributes:
        redelivered: records that it processed again.
        disorder: how often a key's number stepped back, redeliveries aside.
        lost: acknowledged records that it has not processed.
    """

    processed: int
    redelivered: int
    disorder: int
    lost: int


class Load(Worker):
    """Sends each key's numbers in turn, and keeps what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 2,
            "topic.metadata.refresh.interval.ms": 1000, "message.timeout.ms": MESSAGE_TIMEOUT_MS,
            "reconnect.backoff.max.ms": 300, "log_level": 0,
        })  # fmt: skip
        self.acknowledged: set[tuple[int, int]] = set()
        self.partitions: set[int] = set()
        self.failures: list[str] = []
        self._sent = 0

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.add((int(message.key()), int(message.value())))
            self.partitions.add(message.partition())

    def _run(self) -> None:
        while not self._stopping.is_set():
            number, key = divmod(self._sent, KEYS)
            try:
                self._producer.produce(TOPIC, str(number), str(key), on_delivery=self._delivered)
                self._sent += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0 if self._sent < BACKLOG else 1 / PER_SECOND)
            if self._sent >= BACKLOG:
                self._stopping.wait(1 / PER_SECOND)
        self._producer.flush(60)


class Run:
    """One growth, from a fresh broker to the judgement."""

    def __init__(self, folder: Path, seed: int, nodes: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._nodes = nodes
        self._cluster = Cluster("barnabas", folder, nodes, settings=SETTINGS | (ALONE if nodes == 1 else {}))
        self.bootstrap = self._cluster.bootstrap_servers
        self._readers: dict[str, list[subprocess.Popen[bytes]]] = {kind: [] for kind in KINDS}
        self.kills: list[str] = []

    def close(self) -> None:
        """End what is still running."""
        for reader in [each for readers in self._readers.values() for each in readers]:
            reader.kill()
            reader.wait()
        self._cluster.close()

    def begin(self) -> None:
        """Create the topic, and start two readers in each group, at the beginning of the topic."""
        self._cluster.start()
        with Admin(self.bootstrap) as admin:
            results(admin.create_topics([NewTopic(TOPIC, BEFORE, self._nodes)]))
            for kind in KINDS:
                admin.alter_group_offsets(
                    kind, {TopicPartition(TOPIC, index): CommittedOffset(0) for index in range(BEFORE)}
                )
        for kind in KINDS:
            for _ in range(2):
                self._start_reader(kind)

    def _start_reader(self, kind: str) -> None:
        module = [sys.executable, "-m", "tests.group.ordered_reader", self.bootstrap, kind, kind, TOPIC]
        log = (self._folder / f"{kind}.log").open("ab")
        self._readers[kind].append(subprocess.Popen([*module, str(self._folder / kind)], stderr=log, stdout=log))

    def _processed(self, kind: str) -> Iterator[tuple[int, int, int, int]]:
        path = self._folder / kind
        for line in path.read_text().splitlines() if path.exists() else ():
            partition, offset, key, number = map(int, line.split())
            yield partition, offset, key, number

    def reads_new_partitions(self) -> bool:
        """Return whether each group has processed records of a new partition."""
        return all(any(each[0] >= BEFORE for each in self._processed(kind)) for kind in KINDS)

    def held(self) -> int:
        """Return how many partitions are held from the groups."""
        with Admin(self.bootstrap) as admin:
            described = results(admin.describe_groups(KINDS))
            return sum(len(held_from(admin, each)) for each in described.values())

    # The growth

    def grow(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the command."""
        words = command("topic", "grow", TOPIC, "-p", str(AFTER), *options, "-b", self.bootstrap)
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)

    def _generation(self) -> Generation | None:
        with Admin(self.bootstrap, timeout_ms=2000) as admin:
            found = list_growth(admin.cluster, [TOPIC]).get(TOPIC)
            return found[-1] if found else None

    def grow_with_kills(self) -> None:
        """Grow in order; kill the command as soon as it has begun, and while it waits, and the broker."""
        first = self.grow("--ordered", "--settle", SETTLE)
        wait_for("the growth has begun", self._generation)
        self._kill_command(first, "begun")
        second = self.grow("--ordered", "--settle", SETTLE)
        wait_for("the partitions exist", lambda: (found := self._generation()) and found.since_ms)
        then = time.monotonic() + self._random.uniform(0, 2)
        wait_for("some time has passed", lambda: time.monotonic() > then)
        self._kill_command(second, "settling")
        self.kill_broker("settling")
        for _ in range(5):
            last = self.grow("--ordered", "--settle", SETTLE)
            said = last.communicate(timeout=120)[0].decode()
            if last.returncode == 0:
                break
        assert last.returncode == 0, said

    def _kill_command(self, process: subprocess.Popen[bytes], when: str) -> None:
        process.kill()
        process.communicate()
        self.kills.append(f"command {when}")

    def kill_broker(self, when: str) -> None:
        """Kill the broker that coordinates the group of the new protocol, and start it again when another one does."""
        with Admin(self.bootstrap) as admin:
            node = self._cluster[result(admin.describe_groups(["consumer"])["consumer"]).coordinator.id]
            node.kill()
            if self._nodes > 1:
                wait_for("another broker coordinates", partial(self._is_coordinated_elsewhere, node.node_id))
            node.start()
        self.kills.append(f"broker {when}")

    def _is_coordinated_elsewhere(self, node_id: int) -> bool:
        with Admin(self.bootstrap, timeout_ms=2000) as admin:
            return result(admin.describe_groups(["consumer"])["consumer"]).coordinator.id != node_id

    def kill_readers(self) -> None:
        """Kill one reader of each group, and start another."""
        for kind in KINDS:
            gone = self._readers[kind].pop(self._random.randrange(2))
            gone.kill()
            gone.wait()
            self._start_reader(kind)
            self.kills.append(f"reader {kind}")

    # The judgement

    def judged(self, acknowledged: set[tuple[int, int]], *, wait: bool) -> dict[str, Outcome]:
        """Wait until each group has processed everything, and judge it."""
        if wait:
            for kind in KINDS:
                wait_for(
                    f"{kind} has processed everything",
                    lambda kind=kind: acknowledged <= {each[2:] for each in self._processed(kind)},  # type: ignore[misc]
                    180,
                )
        return {kind: self._judge(kind, acknowledged) for kind in KINDS}

    def _judge(self, kind: str, acknowledged: set[tuple[int, int]]) -> Outcome:
        seen: set[tuple[int, int]] = set()
        last: dict[int, int] = {}
        processed: set[tuple[int, int]] = set()
        redelivered = disorder = 0
        for partition, offset, key, number in self._processed(kind):
            if (partition, offset) in seen:
                redelivered += 1
                continue
            seen.add((partition, offset))
            processed.add((key, number))
            disorder += number <= last.get(key, -1)
            last[key] = max(number, last.get(key, -1))
        return Outcome(len(processed), redelivered, disorder, len(acknowledged - processed))


def run(seed: int, *, plain: bool, nodes: int = 1) -> tuple[dict[str, Outcome], list[str]]:
    """Grow a topic once; return each group's outcome, and what was killed."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        one = Run(Path(folder), seed, nodes)
        stack.callback(one.close)
        one.begin()
        with Load(one.bootstrap) as load:
            wait_for("there is a backlog", lambda: len(load.acknowledged) >= BACKLOG)
            if plain:
                one.grow().wait(60)
                wait_for("every group reads the new partitions", one.reads_new_partitions)
            else:
                one.grow_with_kills()
                one.kill_readers()
                one.kill_broker(f"while groups wait for {one.held()} partitions")
            target = len(load.acknowledged) + AFTERWARDS
            wait_for("more records", lambda: len(load.acknowledged) >= target)
        print(f"  {len(load.acknowledged)} acknowledged, {len(load.failures)} given up", file=sys.stderr)
        # A reader that begins at the end loses records when a topic grows without an order: there is nothing to wait for.
        return one.judged(load.acknowledged, wait=not plain), one.kills


def main() -> int:
    """Run, and print a line for each group of each run."""
    parser = argparse.ArgumentParser(
        description="Grow a topic under load, with kills, and judge the order of each key."
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 3))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without an order, and without kills")
    options = parser.parse_args()
    bad = 0
    for seed in range(options.seed, options.seed + options.runs):
        began = time.monotonic()
        outcomes, kills = run(seed, plain=options.plain, nodes=options.nodes)
        for kind, outcome in outcomes.items():
            print(f"seed {seed}: {kind}: {outcome._asdict()}")
            bad += bool(outcome.disorder or outcome.lost)
        print(f"seed {seed}: {time.monotonic() - began:.0f} s; killed: {', '.join(kills) or 'nothing'}", flush=True)
    return 1 if bad and not options.plain else 0


if __name__ == "__main__":
    sys.exit(main())
