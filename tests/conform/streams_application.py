"""Kafka Streams applications as a test runs them: the word count of `drivers/streams/WordCount.java` in a JVM of its own.

An application reads the topic `lines`, counts words in a store with a changelog, behind a repartition topic, and writes each new count to
`counts`. `Lines` feeds it and knows what the counts must be; `counted` reads what came out.
"""

from __future__ import annotations

import queue
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apache_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SOURCE = Path(__file__).parent / "drivers" / "streams" / "WordCount.java"
PARTITIONS = 3
PATIENCE_SECONDS = 240
"""Apache Kafka needs a minute to come back from a kill on a busy machine."""
WORDS = [f"word{index}" for index in range(17)]


def classpath() -> str:
    return apache_kafka.library("streams", "kafka-streams")


def compile_word_count(target: Path) -> str:
    """Compile the program; returns the class path that runs it."""
    if shutil.which("javac") is None:
        pytest.skip("no javac: install a JDK to run Kafka Streams")
    jars = classpath()
    subprocess.run(["javac", "-cp", jars, "-d", str(target), str(SOURCE)], check=True)
    return f"{target}:{jars}"


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("lines", "counts")]).values():
        future.result(30)


class Application:
    """One instance of the application; settings are Kafka Streams' own names."""

    def __init__(self, classes: str, bootstrap: str, state: Path, **settings: str) -> None:
        given = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        command = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes]
        self._log = state.with_suffix(".log")
        state.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "WordCount", bootstrap, str(state), *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.lines: list[str] = []
        self._queue: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line.strip())
        self._queue.put("ended")

    def wait_for(self, wanted: Callable[[str], bool], seconds: float = PATIENCE_SECONDS) -> str:
        """The next line of output that is wanted."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.lines}\n{self._log.read_text()[-3000:]}") from None
            self.lines.append(line)
            if wanted(line):
                return line
            if line == "ended" or line.startswith("error"):
                raise AssertionError(f"{self.lines}\n{self._log.read_text()[-3000:]}")

    def running(self) -> None:
        self.wait_for(lambda line: line == "state RUNNING")

    def tasks(self) -> set[str]:
        """The active tasks of this instance now."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return set(self.wait_for(lambda line: line.startswith("tasks")).split()[1:])

    def owns(self, wanted: Callable[[set[str]], bool]) -> None:
        """Wait until its active tasks are what is wanted: what runs may be ahead of what a thread says of itself."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not wanted(found := self.tasks()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)

    def restored(self) -> int:
        """How many records the instance has restored so far."""
        return sum(int(line.split()[2]) for line in self.lines if line.startswith("restored"))

    def close(self) -> None:
        """End it in good order."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)

    def __enter__(self) -> Application:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Lines:
    """Feeds lines of words, each exactly once, and remembers how often each word was in them."""

    def __init__(self, bootstrap: str, seed: int = 1) -> None:
        self._random = random.Random(seed)
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        self._producer = Producer({**settings, "message.timeout.ms": PATIENCE_SECONDS * 1000})
        self.words: Counter[str] = Counter()
        self._sent = 0

    def feed(self, lines: int) -> None:
        for _ in range(lines):
            words = self._random.choices(WORDS, k=3)
            self.words.update(words)
            self._producer.produce("lines", " ".join(words).encode(), key=str(self._sent).encode(), on_delivery=_must)
            self._sent += 1
            self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE_SECONDS) == 0, "lines are left"


def _must(error: object, message: object) -> None:
    assert error is None, error


def counted(bootstrap: str, wanted: Counter[str], seconds: float = PATIENCE_SECONDS) -> dict[str, list[int]]:
    """All counts of each word in their order, read until each has come to what is wanted."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])
    found: dict[str, list[int]] = {}
    deadline = time.monotonic() + seconds
    try:
        while any(found.get(word, [0])[-1] < count for word, count in wanted.items()):
            assert time.monotonic() < deadline, {word: found.get(word, [0])[-1] - n for word, n in wanted.items()}
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                found.setdefault(key.decode(), []).append(int(value))
        return found
    finally:
        consumer.close()
