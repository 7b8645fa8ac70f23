"""Exports from one broker into the other, in both formats, with both commands killed at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.cli.export_folder import MANIFEST
from barnabas.client.admin import Admin, NewTopic, TopicPartition, result, results
from barnabas.client.offsets import LATEST
from barnabas.retries.record import Record
from tests.cli.exports import content, content_of, odd_records, row, write
from tests.conform.brokers import BarnabasProcess, KafkaProcess, await_leaders
from tests.conform.card.results import OURS, THEIRS
from tests.retries.records import committed

pytestmark = pytest.mark.conform

PATIENCE_SECONDS = 240
KEEP = {"retention.ms": "-1"}


def bootstraps(both_brokers: dict[str, BarnabasProcess | KafkaProcess], *names: str) -> list[str]:
    if any(name not in both_brokers for name in names):
        pytest.skip("only the other broker runs")
    return [both_brokers[name].bootstrap_servers for name in names]


def create(bootstrap: str, topic: str, settings: dict[str, str] | None = None) -> None:
    with Admin(bootstrap) as admin:
        results(admin.create_topics([NewTopic(topic, 2, 1, {**KEEP, **(settings or {})})]))
    await_leaders(bootstrap, {topic: 2})


def kill_when(count: Callable[[], int], more: int, *arguments: str) -> None:
    """Run `barnabas topic …` and kill it when a count has grown by more than that; or let it end before."""
    until = count() + more
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas", "topic", *arguments], stdout=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and count() <= until:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize(
    ("begin", "end", "file_format"),
    [
        (THEIRS, OURS, "jsonl"),
        (OURS, THEIRS, "parquet"),
        # Each way and each format are there once above.
        pytest.param(THEIRS, OURS, "parquet", marks=pytest.mark.long),
        pytest.param(OURS, THEIRS, "jsonl", marks=pytest.mark.long),
    ],
)
def test_from_one_broker_to_the_other_with_kills(
    both_brokers: dict[str, BarnabasProcess | KafkaProcess],
    begin: str,
    end: str,
    file_format: str,
    tmp_path: Path,
) -> None:
    source, target = bootstraps(both_brokers, begin, end)
    luck = random.Random(f"{begin} {file_format}")
    topic = f"export-{file_format}"
    copy = f"import-{file_format}"
    create(source, topic)
    records = odd_records(6_000)
    large = [Record("t", 0, 0, 5, b"large", luck.randbytes(100_000)) for _ in range(60)]
    records = [*records[:3_000], *large, *records[3_000:]]
    write(source, topic, records)
    folder = tmp_path / "export"
    exporting = ("export", topic, str(folder), "--format", file_format, "--file-mb", "1")

    def files() -> int:
        return len(list(folder.glob(f"*.{file_format}"))) if folder.exists() else 0

    kills = 0
    while not (folder / MANIFEST).exists():
        kill_when(files, luck.randrange(2), *exporting, "-b", source)
        kills += 1
        assert kills < 100
    exported = row(source, *exporting)
    assert (exported["records"], exported["status"]) == (len(records), "finished before")
    assert exported["files"] > 3
    with Admin(target) as admin:
        results(admin.create_topics([NewTopic(copy, 3, 1, KEEP)]))
        await_leaders(target, {copy: 3})
        wheres = dict.fromkeys((TopicPartition(copy, 0), TopicPartition(copy, 1)), LATEST)

        def sent() -> int:
            return sum(result(each).offset for each in admin.list_offsets(wheres).values())

        for _ in range(4):
            kill_when(sent, luck.randrange(1_200), "import", str(folder), copy, "-b", target)
    imported = row(target, "import", str(folder), copy)
    assert (imported["records"], imported["of"]) == (len(records), len(records))
    assert row(target, "import", str(folder), copy)["status"] == "finished before"
    assert content_of(target, copy) == content(records)


@pytest.mark.parametrize("name", [OURS, THEIRS])
def test_what_compaction_left(
    both_brokers: dict[str, BarnabasProcess | KafkaProcess], name: str, tmp_path: Path
) -> None:
    (bootstrap,) = bootstraps(both_brokers, name)
    topic = "export-compacted"
    create(bootstrap, topic, {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"})
    producer = Producer({"bootstrap.servers": bootstrap})
    kept: list[Record] = []
    sent = 0
    # Until compaction has left a gap; each record rolls the segment, and only older segments are compacted.
    while len(kept) == sent:
        assert sent < PATIENCE_SECONDS * 20
        producer.produce(topic, str(sent), f"k{sent % 3}", partition=0)
        assert producer.flush(30) == 0
        sent += 1
        kept = committed(bootstrap, topic, 2)
    found = row(bootstrap, "export", topic, str(tmp_path))
    # Compaction may have gone on since; the last value of each key stays.
    assert 3 <= found["records"] <= len(kept)
    row(bootstrap, "import", str(tmp_path), "import-compacted", "--create")
    copied = committed(bootstrap, "import-compacted", 2)
    assert {each.key: each.value for each in copied} == {each.key: each.value for each in kept}
    AdminClient({"bootstrap.servers": bootstrap}).delete_topics([topic, "import-compacted"])
