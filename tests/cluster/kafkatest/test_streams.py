"""`streams_smoke_test` and `streams_broker_bounce_test` of kafkatest, exactly once: Kafka Streams' own smoke test while brokers die.

Its driver writes for a minute and a half. Its application aggregates in windows, tables and joins, and the driver compares all results with
what they must be. With exactly-once every result is right, whether brokers or the application bounced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import apache_kafka
import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.java_program import TalkingProgram
from tests.cluster.kafkatest.verifiable import write_properties
from tests.cluster.node_process import KINDS
from tests.cluster.topics import create_safe_topics

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

SMOKE_TEST = "org.apache.kafka.streams.tests.StreamsSmokeTest"
TOPICS = (
    "data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum", "sws-raw", "sws-suppressed", "cnt", "avg",
    "tagg", "fk", "wcnt",
)  # fmt: skip
VERIFIED_SECONDS = 600.0


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
    """The driver, and one instance of the application after the other."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.driver = SmokeTest(cluster, folder, "driver", "run")
        self.processors = [SmokeTest(cluster, folder, f"processor-{number}", "process") for number in range(3)]

    def start(self, number: int) -> None:
        """Start an instance; wait until it works."""
        processor = self.processors[number]
        processor.start()
        processor.await_that("runs", lambda: processor.has_said("REBALANCING -> RUNNING"))

    def await_processed(self, number: int) -> None:
        """Wait until an instance has processed more records than now."""
        processor = self.processors[number]
        since = len(processor.lines)
        processor.await_that("processes", lambda: processor.has_said("processed", since=since))

    def check(self) -> None:
        """The driver has verified every result."""
        self.driver.await_end(VERIFIED_SECONDS)
        said = self.driver.lines
        assert "SUCCESS" in said, "\n".join(said[-60:])
        assert "ALL-RECORDS-DELIVERED" in said, "\n".join(said[-60:])

    def close(self) -> None:
        for program in (self.driver, *self.processors):
            program.stop(is_clean=False)


@pytest.fixture
def smoke(kind: str, tmp_path: Path) -> Iterator[Smoke]:
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes"))
        create_safe_topics(cluster, TOPICS)
        made = Smoke(cluster, tmp_path)
        stack.callback(made.close)
        yield made


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_brokers_bounce(smoke: Smoke, is_clean: bool) -> None:
    """Whichever broker leads the input is bounced, as often as the driver leaves time for."""
    smoke.start(0)
    smoke.driver.start()
    smoke.await_processed(0)
    bounced = 0
    while not smoke.driver.has_said("Result Verification") and bounced < 5:
        bounce(smoke.cluster, smoke.cluster.leader_of("data", 0), is_clean=is_clean)
        bounced += 1
        if smoke.driver.is_up:
            smoke.await_processed(0)
    assert bounced >= 3, f"only {bounced} bounces"
    smoke.check()
    smoke.processors[0].stop()
    assert not smoke.processors[0].has_said("SMOKE-TEST-CLIENT-EXCEPTION"), smoke.processors[0].last_lines()


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_applications_bounce(smoke: Smoke, is_clean: bool) -> None:
    """One instance takes over from the other, and a broker is killed meanwhile."""
    smoke.start(0)
    smoke.driver.start()
    smoke.await_processed(0)
    smoke.processors[0].stop(is_clean=is_clean)
    smoke.start(1)
    smoke.await_processed(1)
    bounce(smoke.cluster, smoke.cluster.leader_of("data", 1), is_clean=False)
    smoke.processors[1].stop(is_clean=is_clean)
    smoke.start(2)
    smoke.check()
