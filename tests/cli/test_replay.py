"""`barnabas replay` against a broker: what it sends, what it refuses, and what is there after it was killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.cli.cut import cut
from barnabas.cli.replay import replay
from barnabas.client.admin import Admin, NewTopic
from barnabas.embedded.broker import Broker
from barnabas.retries.committed_records import log_ends
from barnabas.retries.record import Record
from barnabas.retries.replay import REPLAYED_FROM
from tests.conform.brokers import await_leaders, broker
from tests.retries.records import committed, values

HOUR_MS = 3_600_000
BEGAN_MS = 1_700_000_000_000


def fill(bootstrap: str, topic: str, count: int) -> None:
    """Write records an hour apart, to two partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [("h", b"1"), ("h", None)] if number % 2 else []
        time_ms = BEGAN_MS + number * HOUR_MS
        producer.produce(
            topic, f"order {number}", f"k{number % 3}", partition=number % 2, timestamp=time_ms, headers=headers
        )
    assert producer.flush(30) == 0


class Commands:
    """Two topics with two partitions: six orders, and an empty one."""

    def __init__(self, running: Broker) -> None:
        self.broker = running
        self.bootstrap = running.bootstrap_servers
        for topic in ("orders", "copy"):
            running.create_topic(topic, partitions=2)
        fill(self.bootstrap, "orders", 6)

    def run(self, *options: str, topic: str = "orders") -> Result:
        return CliRunner().invoke(replay, [topic, *options, "-b", self.bootstrap, "-o", "json"])

    def counts(self, *options: str) -> tuple[int, int, str]:
        result = self.run(*options)
        assert result.exit_code == 0, result.output
        (row,) = json.loads(result.stdout)
        return row["read"], row["written"], row["status"]

    def refused(self, *options: str, topic: str = "orders") -> str:
        result = self.run(*options, topic=topic)
        assert result.exit_code in (1, 2), result.output
        return result.stderr.splitlines()[-1]

    def copied(self) -> list[Record]:
        return committed(self.bootstrap, "copy", 2)


@pytest.fixture
def commands(barnabas: Broker) -> Commands:
    return Commands(barnabas)


@pytest.mark.slow
def test_each_record_is_sent_once_as_it_is(commands: Commands) -> None:
    given = ("--from", "start", "--to", "copy")
    assert commands.counts(*given, "--dry-run") == (6, 6, "would be sent")
    assert commands.copied() == []
    assert commands.counts(*given) == (6, 6, "sent")
    fill(commands.bootstrap, "orders", 2)
    assert commands.counts(*given) == (6, 6, "finished before"), "the end is that of the first run"
    for before, after in zip(committed(commands.bootstrap, "orders", 2)[:3], commands.copied()[:3], strict=True):
        assert (after.key, after.value, after.partition, after.timestamp_ms) == (
            before.key,
            before.value,
            before.partition,
            before.timestamp_ms,
        )
        assert after.headers == (*before.headers, (REPLAYED_FROM, f"orders-0@{before.offset}".encode()))
    assert len(commands.copied()) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from", "1"), "order 2,order 4,order 3,order 5"),
        (("--from", "1:2"), "order 2,order 3"),
        (("--from", "2023-11-15T01:00:00", "--filter", "key=k1"), "order 4"),
        (("--from", "start", "--filter", "header=h", "--filter", "value=5"), "order 5"),
        (("--from", "release"), "new"),
    ],
    ids=" ".join,
)
def test_what_is_chosen(commands: Commands, options: tuple[str, ...], expected: str) -> None:
    assert CliRunner().invoke(cut, ["create", "release", "orders", "-b", commands.bootstrap]).exit_code == 0
    producer = Producer({"bootstrap.servers": commands.bootstrap})
    producer.produce("orders", "new", timestamp=BEGAN_MS - HOUR_MS, partition=1)
    assert producer.flush(30) == 0
    commands.counts(*options, "--to", "copy")
    assert [each for each in values(commands.copied()) if each != "new" or expected == "new"] == expected.split(",")


@pytest.mark.slow
def test_a_rewrite_that_raises_goes_on_when_it_is_mended(commands: Commands, tmp_path: Path) -> None:
    script = tmp_path / "mask.py"
    header = "from dataclasses import replace\ndef mask(record):\n"
    script.write_text(
        f"{header}    return replace(record, value=bytes([int(record.value[-1:]) // (4 - record.offset * 2)]))\n"
    )
    given = ("--from", "start", "--to", "copy", "--rewrite", f"{script}:mask")
    line = commands.refused(*given)
    assert line.startswith("error: mask raised ZeroDivisionError: ")
    # either partition may come first
    assert re.search(r"for orders-[01]@2 \(mend it, and run the same command: it goes on from there\)$", line)
    script.write_text(
        f"{header}    return None if record.offset == 1 else replace(record, key=b'x', value=b'masked')\n"
    )
    assert commands.counts(*given) == (6, 4, "sent")
    assert values(commands.copied()) == ["masked"] * 4
    assert len({each.partition for each in commands.copied()}) == 1, "a new key has a partition of its own"


@pytest.mark.slow
def test_what_is_refused(commands: Commands, tmp_path: Path) -> None:
    given = ("--from", "start", "--to", "copy")
    assert "onto itself" in commands.refused("--from", "start", "--to", "orders")
    assert "did you mean copy?" in commands.refused("--from", "start", "--to", "cpoy")
    assert "cut release does not exist" in commands.refused("--from", "release", "--to", "copy")
    assert "is not a rate" in commands.refused(*given, "--rate", "fast")
    assert "not one of key, value" in commands.refused(*given, "--filter", "kye=1")
    assert "there is no Python file" in commands.refused(*given, "--rewrite", f"{tmp_path}/no.py:f")
    commands.broker.create_topic("narrow", partitions=1)
    assert commands.refused("--from", "start", "--to", "narrow") == (
        "error: topic narrow has fewer partitions (1) than topic orders (2) (`barnabas topic alter narrow -p 2` adds them)"
    )
    CliRunner().invoke(cut, ["create", "release", "orders", "-b", commands.bootstrap])
    commands.counts(*given)
    assert "replay orders-to-copy began as `barnabas replay orders --from start --to copy`" in commands.refused(
        "--from", "1", "--to", "copy"
    )
    with Admin(commands.bootstrap) as admin:
        admin.delete_topics(["orders"])
    commands.broker.create_topic("orders", partitions=2)
    assert "cut release is of a topic orders that was deleted" in commands.refused(
        "--from", "release", "--to", "copy", "--name", "other"
    )
    assert "was deleted and created again" in commands.refused(*given)
    assert len(commands.copied()) == 6


@pytest.mark.slow
def test_a_group_shows_the_progress(commands: Commands) -> None:
    commands.counts("--from", "start", "--to", "copy", "--group", "mover")
    with Admin(commands.bootstrap) as admin:
        assert [each.offset for each in admin.list_group_offsets("mover").values()] == [3, 3]


@pytest.mark.slow
@pytest.mark.conform
@pytest.mark.parametrize("kind", ["barnabas", pytest.param("apache-kafka", marks=pytest.mark.long)])
def test_killed_at_any_time_it_goes_on(kind: str, tmp_path: Path) -> None:
    count = 12_000
    replicas = dict.fromkeys(("transaction.state.log.replication.factor", "offsets.topic.replication.factor"), "1")
    with broker(kind, tmp_path, {**replicas, "transaction.state.log.min.isr": "1"}) as running:
        bootstrap = running.bootstrap_servers
        with Admin(bootstrap) as admin:
            # The records are old: retention would delete them during the replay, half a minute after the start of Apache Kafka.
            admin.create_topics([NewTopic(name, 2, 1, {"retention.ms": "-1"}) for name in ("orders", "copy")])
        await_leaders(bootstrap, {"orders": 2, "copy": 2})
        fill(bootstrap, "orders", count)
        words = [
            sys.executable,
            "-m",
            "barnabas",
            "replay",
            "orders",
            "--from",
            "start",
            "--to",
            "copy",
            "-b",
            bootstrap,
        ]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for _ in range(4):
            with subprocess.Popen([*words, "--rate", "2000/s"]) as process:
                until = log_ends(admin, [("copy", 0)])["copy", 0] + 200
                while log_ends(admin, [("copy", 0)])["copy", 0] < until:
                    assert process.poll() is None, "it is too fast to be killed"
                process.send_signal(signal.SIGKILL)
        printed = subprocess.run([*words, "-o", "json"], stdout=subprocess.PIPE, check=True, timeout=120).stdout
        row: dict[str, Any] = json.loads(printed)[0]
        assert (row["read"], row["written"], row["status"]) == (count, count, "sent")
        found = Counter(values(committed(bootstrap, "copy", 2)))
        assert found == Counter(f"order {number}" for number in range(count))
