"""Kafka Streams' own smoke test, exactly once: a driver that writes and verifies, and the application whose results it verifies."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import apache_kafka

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.java_program import TalkingProgram
from tests.cluster.kafkatest.verifiable import write_properties

SMOKE_TEST = "org.apache.kafka.streams.tests.StreamsSmokeTest"
TOPICS = (
    "data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum", "sws-raw", "sws-suppressed", "cnt", "avg",
    "tagg", "fk", "wcnt",
)  # fmt: skip


class SmokeTest(TalkingProgram):
    """The driver (`run`) or the application (`process`)."""

    heap = "512m"

    def __init__(self, cluster: Cluster, folder: Path, name: str, command: str) -> None:
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers, "processing.guarantee": "exactly_once_v2",
            "replication.factor": "3", "num.stream.threads": "2", "commit.interval.ms": "500",
            "state.dir": str(folder / "state" / name), "acceptable.recovery.lag": "9223372036854775807",
            "session.timeout.ms": "10000",
        }  # fmt: skip
        super().__init__(name, SMOKE_TEST, folder, write_properties(folder / f"{name}.properties", settings), command)

    def class_path(self) -> str:
        own = apache_kafka.library("streams-tests", "kafka-streams:test", "kafka-clients:test", "kafka-streams")
        return f"{own}:{apache_kafka.classpath()}"


class Smoke:
    """The driver, and one instance of the application after the other.

    Attributes:
        verified_seconds: within which the driver must have verified all.
    """

    verified_seconds: ClassVar[float] = 600.0

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.driver = SmokeTest(cluster, folder, "driver", "run")
        self.processors = [SmokeTest(cluster, folder, f"processor-{number}", "process") for number in range(3)]

    def start(self, number: int) -> None:
        """Start an instance; wait until it works."""
        processor = self.processors[number]
        processor.start()
        processor.await_that("runs", lambda: processor.has_said("REBALANCING -> RUNNING"))

    @property
    def is_writing(self) -> bool:
        """Whether the driver writes; afterwards it verifies."""
        return self.driver.is_up and not self.driver.has_said("Result Verification")

    def await_processed(self, number: int, *, or_written: bool = False) -> None:
        """Wait until an instance has processed more records than now.

        Args:
            or_written: or until the driver writes no more, so that there may be nothing to process.
        """
        processor = self.processors[number]
        since = len(processor.lines)
        processor.await_that(
            "processes",
            lambda: processor.has_said("processed", since=since) or (or_written and not self.is_writing),
        )

    def check(self) -> None:
        """The driver has verified every result."""
        self.driver.await_end(self.verified_seconds)
        said = self.driver.lines
        assert "SUCCESS" in said, "\n".join(said[-60:])
        assert "ALL-RECORDS-DELIVERED" in said, "\n".join(said[-60:])

    def close(self) -> None:
        for program in (self.driver, *self.processors):
            program.stop(is_clean=False)
