"""What the tests of exports write, how they run the two commands, and how they kill them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import Result
from confluent_kafka import Producer

from barnabas.cli.export_manifest import DataFile, Manifest, Place
from barnabas.retries.record import Record
from tests.cli.test_commands import run
from tests.retries.records import committed

KILLED = -9
_PATIENCE_SECONDS = 120

# Dies at a moment: before or after the n-th call of what a run cannot take back.
_MORTAL = """
import os, signal, sys

import barnabas.cli.importing as importing
from barnabas.main import main

left = int(sys.argv[1])


def moment():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)


def mortal(call):
    def called(*arguments):
        moment()
        done = call(*arguments)
        moment()
        return done
    return called


class Mortal:
    def __init__(self, producer):
        self._producer = producer

    def __len__(self):
        return len(self._producer)

    def __getattr__(self, name):
        call = getattr(self._producer, name)
        return mortal(call) if name == "commit_transaction" else call


os.replace = mortal(os.replace)
made = importing.transactional_producer
importing.transactional_producer = lambda *arguments: Mortal(made(*arguments))
main(sys.argv[2:])
"""


def odd_records(count: int, seed: int = 0) -> list[Record]:
    """Return records of two partitions with every kind of key, value, header and time; offsets are not those of a log."""
    luck = random.Random(seed)

    def some() -> bytes | None:
        length = luck.choice((0, 1, 3, 40))
        text = luck.choice((b"", 'é\u2028\x1b\x7f\n"\\'.encode(), b"\x00\xff\xfe", luck.randbytes(length), b"plain"))
        return luck.choice((None, text, text))

    def headers() -> tuple[tuple[str, bytes | None], ...]:
        return tuple((luck.choice(("", "a", "a", "é\n")), some()) for _ in range(luck.choice((0, 0, 1, 4))))

    times = (-1, 1, 1_700_000_000_123, 1_500_000_000_999)
    return [Record("t", number % 2, number, luck.choice(times), some(), some(), headers()) for number in range(count)]


def write(bootstrap: str, topic: str, records: list[Record]) -> None:
    """Write records, in transactions of a few; after each of these comes one that is aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"writer of {topic}"})
    producer.init_transactions()
    size = max(len(records) // 3, 1)
    for begin in range(0, len(records), size):
        producer.begin_transaction()
        for each in records[begin : begin + size]:
            headers: list[tuple[str, Any]] = list(each.headers)
            producer.produce(
                topic, each.value, each.key, partition=each.partition, timestamp=each.timestamp_ms, headers=headers
            )
        producer.commit_transaction()
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, b"aborted", partition=partition)
        producer.flush()
        producer.abort_transaction()


Content = list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]]


def content(records: list[Record]) -> Content:
    """Return all of records but their offsets, partition by partition."""
    ordered = sorted(records, key=lambda each: each.partition)
    return [(each.partition, each.key, each.value, each.headers, each.timestamp_ms) for each in ordered]


def content_of(bootstrap: str, topic: str) -> Content:
    return content(committed(bootstrap, topic, 2))


def row(bootstrap: str, *arguments: str) -> dict[str, Any]:
    """Run `barnabas topic …` and return the row that it prints."""
    result = run("topic", *arguments, "-b", bootstrap, "-o", "json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    return dict(found)


def refused(bootstrap: str, *arguments: str) -> str:
    """Run `barnabas topic …`, which must fail with one line, and return that."""
    result: Result = run("topic", *arguments, "-b", bootstrap)
    assert result.exit_code in (1, 2), result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0].removeprefix("error: ")


def killed_at(moment: int, bootstrap: str, *arguments: str) -> int:
    """Run `barnabas topic …` in a process that dies at a moment; return how it ended."""
    command = [sys.executable, "-c", _MORTAL, str(moment), "topic", *arguments, "-b", bootstrap]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=_PATIENCE_SECONDS, env={**os.environ})
    return done.returncode


def manifest(file_format: str = "jsonl", *files: DataFile) -> Manifest:
    return Manifest(
        "t", "id", "cluster", 2, {"retention.ms": "5"}, "--from start", file_format, {"offset": "int64"},
        [Place(0, 3, 9), Place(1, 0, 4)], list(files),
    )  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())
