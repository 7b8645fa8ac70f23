"""`TransactionalMessageCopier`: it copies a topic in transactions, and aborts every third of them, as kafkatest runs it."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.java_program import JavaProgram
from tests.cluster.program import Event

TIMEOUT_MS = 40_000
"""The timeout of a transaction that a killed copier left open, if no successor ends it before."""


class Copier(JavaProgram):
    """Copies one partition, or with others of its group all of a topic.

    Args:
        partition: of the input topic; None for a member of a group.
        has_group_metadata: offsets are committed with the group's generation, so that its coordinator can fence the copier.
        size: records in a transaction.

    Attributes:
        copied: records of committed transactions in all its runs.
        remaining: what the present run has still to copy; -1 if it has not said so.
        is_done: a run ended because nothing remained.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        number: int,
        topics: tuple[str, str],
        *,
        partition: int | None,
        has_group_metadata: bool,
        size: int,
    ) -> None:
        source, target = topics
        more = [] if partition is not None else ["--group-mode"]
        if has_group_metadata:
            more.append("--use-group-metadata")
        super().__init__(
            f"copier-{number}", "org.apache.kafka.tools.TransactionalMessageCopier", folder,
            "--broker-list", cluster.bootstrap_servers, "--transactional-id", f"copier-{number}",
            "--consumer-group", f"copiers-of-{source}", "--input-topic", source, "--output-topic", target,
            "--input-partition", str(-1 if partition is None else partition), "--transaction-size", str(size),
            "--transaction-timeout", str(TIMEOUT_MS), "--enable-random-aborts", *more,
        )  # fmt: skip
        self.copied = 0
        self.remaining = -1
        self.is_done = False
        self._before = self._consumed = 0

    def start(self) -> None:
        self._before, self._consumed, self.remaining = self.copied, 0, -1
        super().start()

    def event(self, event: Event) -> None:
        self.copied = self._before + int(event["totalProcessed"])
        self._consumed, self.remaining = int(event["consumed"]), int(event["remaining"])
        self.is_done = event["stage"] == "ShutdownComplete" and not self.remaining

    @property
    def progress(self) -> float:
        """The part of its work that the present run has done, 0 to 1."""
        if self.remaining < 0:
            return 0.0
        whole = self._consumed + self.remaining
        return self._consumed / whole if whole else 1.0

    def bounce(self, *, is_clean: bool) -> None:
        """End it and start it again, unless it is done."""
        if not self.is_done:
            self.stop(is_clean=is_clean)
            if not self.is_done:
                self.start()


class CommittedReader(JavaProgram):
    """A console consumer that reads committed records while they are written.

    Attributes:
        values: of each partition, in order.
    """

    def __init__(self, cluster: Cluster, folder: Path, topic: str, protocol: str) -> None:
        super().__init__(
            f"reader-{protocol}", "org.apache.kafka.tools.consumer.ConsoleConsumer", folder,
            "--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--group", f"{protocol}-readers-of-{topic}",
            "--from-beginning", "--isolation-level", "read_committed", "--formatter-property", "print.partition=true",
            "--command-property", f"group.protocol={protocol}",
        )  # fmt: skip
        self.values: dict[int, list[int]] = {}

    def line(self, text: str) -> None:
        partition, _, value = text.partition("\t")
        self.values.setdefault(int(partition.removeprefix("Partition:")), []).append(int(value))

    @property
    def count(self) -> int:
        return sum(len(each) for each in list(self.values.values()))
