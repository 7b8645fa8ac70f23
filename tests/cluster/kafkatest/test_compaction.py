"""`log_compaction_test` of kafkatest: `LogCompactionTester` finds the last value of each key, and no deleted one, in a compacted log.

When the log is compacted, the leader is killed and started again.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.java_program import TalkingProgram
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

MESSAGES = 100_000
SETTINGS = {"log.segment.bytes": "1048576", "log.cleaner.backoff.ms": "1000"}


class CompactionTester(TalkingProgram):
    """`LogCompactionTester`."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(
            "tester", "org.apache.kafka.tools.LogCompactionTester", folder, "--bootstrap-server", cluster.bootstrap_servers,
            "--messages", str(MESSAGES), "--sleep", "30", "--duplicates", "10", "--percent-deletes", "10",
        )  # fmt: skip


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_compacted_log_has_the_last_value_of_each_key(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes", settings=SETTINGS))
    tester = CompactionTester(cluster, tmp_path)
    stack.callback(tester.stop, is_clean=False)
    tester.start()
    topic = wait_for(
        "its topic", lambda: next((each for each in cluster.all_topics() if "log-cleaner-test" in each), "")
    )
    tester.await_that("all is written", lambda: tester.has_said("Sleeping for"))

    def is_compacted() -> bool:
        return len(read_partition(cluster.bootstrap_servers, topic, 0)) < MESSAGES // 2

    wait_for("the log is compacted", is_compacted)
    bounce(cluster, cluster.leader_of(topic, 0), is_clean=False)
    tester.await_end()
    assert not tester.exit_code, tester.last_lines()
    assert tester.has_said("Data verification is completed"), "\n".join(tester.lines)
