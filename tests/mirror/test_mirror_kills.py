"""A mirror between barnabas and Apache Kafka, in both directions: it and brokers are killed, and each record is there once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.client.admin import Admin, NewTopic, results
from tests.conform.brokers import BarnabasProcess, KafkaProcess, await_leaders, broker
from tests.mirror.two_clusters import commit_offsets, next_values, without_offsets
from tests.retries.records import committed, values

pytestmark = [pytest.mark.slow, pytest.mark.conform, pytest.mark.timeout(900)]

TOPICS = {"orders": 3, "bills": 1}
REPLICAS = dict.fromkeys(("transaction.state.log.replication.factor", "offsets.topic.replication.factor"), "1")
BROKER = {**REPLICAS, "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0"}
KILLS = 6
Running = BarnabasProcess | KafkaProcess


@contextmanager
def two(kinds: tuple[str, str], folder: Path) -> Iterator[tuple[Running, Running]]:
    with broker(kinds[0], folder / "source", BROKER) as source, broker(kinds[1], folder / "target", BROKER) as target:
        yield source, target


def create_topics(bootstrap: str) -> None:
    """Create the topics, for records with old timestamps."""
    with Admin(bootstrap) as admin:
        results(
            admin.create_topics([NewTopic(name, count, 1, {"retention.ms": "-1"}) for name, count in TOPICS.items()])
        )
    await_leaders(bootstrap, TOPICS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Start processes that Ctrl-C ends, also if this one runs in the background of a shell, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def command(source: Running, target: Running, *options: str) -> list[str]:
    addresses = [source.bootstrap_servers, target.bootstrap_servers]
    return [sys.executable, "-m", "barnabas.main", "mirror", *addresses, *options]


@contextmanager
def written(bootstrap: str) -> Iterator[dict[tuple[str, int], list[str]]]:
    """Write to the topics until the block ends: some records alone, some in transactions, of which some are aborted."""
    ended = threading.Event()
    done: dict[tuple[str, int], list[str]] = {
        (topic, each): [] for topic, count in TOPICS.items() for each in range(count)
    }

    def write() -> None:
        plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
        transactional.init_transactions(60)
        number = 0
        for turn in range(1_000_000):
            is_aborted, in_transaction = turn % 7 == 3, turn % 2 == 1
            producer = transactional if in_transaction else plain
            if in_transaction:
                producer.begin_transaction()
            for _ in range(150):
                number += 1
                topic = "bills" if number % 4 == 3 else "orders"
                partition = number % 4 % TOPICS[topic]
                headers: list[tuple[str, str | bytes | None]] = [("n", str(number).encode())] if number % 3 else []
                producer.produce(
                    topic,
                    f"{number}",
                    f"k{number % 10}",
                    partition,
                    timestamp=1_700_000_000_000 + number,
                    headers=headers,
                )
                if not (in_transaction and is_aborted):
                    done[topic, partition].append(f"{number}")
            producer.flush(60)
            if in_transaction:
                producer.abort_transaction(60) if is_aborted else producer.commit_transaction(60)
            if ended.wait(0.02):
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def end_transactions(bootstrap: str) -> None:
    """End all transactions: Apache Kafka that is killed while it ends one may leave it open for ever (KAFKA-20734)."""
    with Admin(bootstrap) as admin:
        names = [each.transactional_id for each in admin.list_transactions()]
        admin.cluster.retry(lambda: results(admin.fence_producers(names)))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 11))])
@pytest.mark.parametrize(
    "kinds", [("apache-kafka", "barnabas"), ("barnabas", "apache-kafka")], ids=lambda each: "-to-".join(each)
)
def test_each_record_is_there_once_though_the_mirror_is_killed(
    kinds: tuple[str, str], seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with two(kinds, tmp_path) as (source, target):
        addresses = source.bootstrap_servers, target.bootstrap_servers
        create_topics(addresses[0])
        with written(addresses[0]) as done:
            for turn in range(KILLS):
                process = subprocess.Popen(command(source, target))
                try:
                    process.wait(1.5 + 3 * chance.random())
                    raise AssertionError(f"the mirror has ended: {process.returncode}")
                except subprocess.TimeoutExpired:
                    if turn == KILLS // 2 and kinds[1] == "barnabas":
                        target.kill()
                    process.kill()
                    process.wait()
                    if turn == KILLS // 2 and kinds[1] == "apache-kafka":
                        end_transactions(addresses[1])
                        target.kill()
                if turn == KILLS // 2:
                    target.start()
        assert sum(map(len, done.values())) > 1000
        half = {}
        originals = {topic: committed(addresses[0], topic, count) for topic, count in TOPICS.items()}
        for (topic, partition), all_of_it in done.items():
            records = [each for each in originals[topic] if each.partition == partition]
            assert values(records) == all_of_it
            at = len(records) // 2
            half[topic, partition] = all_of_it[at]
            commit_offsets(addresses[0], f"{topic}-{partition}", topic, {partition: records[at].offset})
        subprocess.run(command(source, target, "--until-end"), check=True, timeout=300)
        copies = {topic: committed(addresses[1], topic, count) for topic, count in TOPICS.items()}
        for topic in TOPICS:
            assert without_offsets(copies[topic]) == without_offsets(originals[topic])
        with Admin(addresses[1]) as admin:
            for (topic, partition), value in half.items():
                ((where, offset),) = admin.list_group_offsets(f"{topic}-{partition}").items()
                assert where == (topic, partition)
                left = [each for each in copies[topic] if each.partition == partition and each.offset >= offset.offset]
                assert values(left)[0] == value


@pytest.mark.parametrize(
    "kinds", [("apache-kafka", "barnabas"), ("barnabas", "apache-kafka")], ids=lambda each: "-to-".join(each)
)
def test_the_second_cluster_takes_over_with_its_groups(kinds: tuple[str, str], tmp_path: Path) -> None:
    with broker(kinds[1], tmp_path / "target", BROKER) as target:
        with broker(kinds[0], tmp_path / "source", BROKER) as source:
            addresses = source.bootstrap_servers, target.bootstrap_servers
            create_topics(addresses[0])
            with interruptible():
                mirror = subprocess.Popen(command(source, target))
            try:
                with written(addresses[0]) as done:
                    commit_offsets(addresses[0], "billing", "orders", {0: 0, 1: 0, 2: 0})
                    processed = next_values(addresses[0], "billing", "orders", 700)
                await_copy(addresses[1], sum(map(len, done.values())))
                # The groups are moved once more.
                mirror.send_signal(signal.SIGINT)
                assert mirror.wait(60) == 0
            finally:
                mirror.kill()
                mirror.wait()
            source.kill()
        expected = [value for (topic, _), found in done.items() if topic == "orders" for value in found]
        processed += next_values(addresses[1], "billing", "orders", len(expected) - len(processed))
        assert sorted(processed, key=int) == sorted(expected, key=int)


def await_copy(bootstrap: str, count: int, seconds: float = 120) -> None:
    """Wait until the target has so many records."""
    deadline = time.monotonic() + seconds
    found = 0
    while True:
        with suppress(KafkaException):  # a topic is not there yet
            found = sum(len(committed(bootstrap, topic, partitions)) for topic, partitions in TOPICS.items())
            if found == count:
                return
        assert time.monotonic() < deadline, f"{found} of {count} are copied"
        time.sleep(0.2)
