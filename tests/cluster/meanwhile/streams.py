"""Kafka Streams' smoke test, exactly once: its application aggregates in windows, tables and joins; its driver compares every result.

The driver writes for a minute and a half, then verifies. A long exchange goes on without it: the verdict counts the changes of a node
that it and its application have seen while they wrote. The driver has no settings of security, so a secured cluster does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.exchange_judge import Verdict
from tests.cluster.kafkatest.smoke import TOPICS, Smoke
from tests.cluster.meanwhile.companion import Companion
from tests.cluster.topics import create_safe_topics

VERIFIED = "verified by the driver of Kafka Streams"


class Streams(Companion):
    """The driver, and one instance of the application."""

    name = "Kafka Streams"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._cluster = cluster
        self._smoke = Smoke(cluster, folder)
        self._steps = 0

    def begin(self) -> None:
        create_safe_topics(self._cluster, TOPICS)
        self._smoke.start(0)
        self._smoke.driver.start()
        self._smoke.await_processed(0)

    def await_progress(self) -> None:
        if self._smoke.is_writing:
            self._smoke.await_processed(0, or_written=True)
            self._steps += 1

    def finish(self, ends: Sequence[int]) -> Verdict:
        driver, processor = self._smoke.driver, self._smoke.processors[0]
        driver.await_end(Smoke.verified_seconds)
        verdict = Verdict({"changes while it wrote": self._steps})
        is_verified = all(each in driver.lines for each in ("SUCCESS", "ALL-RECORDS-DELIVERED"))
        verdict.counted[VERIFIED] = int(is_verified)
        verdict.found("not verified", [] if is_verified else driver.lines[-20:])
        processor.stop()
        failed = [each for each in processor.lines if "SMOKE-TEST-CLIENT-EXCEPTION" in each]
        verdict.found("failures of the application", failed)
        verdict.found("empty checks", [] if self._steps else ["no node changed while the driver wrote"])
        return verdict

    def close(self) -> None:
        self._smoke.close()
