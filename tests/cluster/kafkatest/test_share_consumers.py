"""`share_consumer_test` of kafkatest, with brokers that bounce: every record reaches the share group, and is acknowledged.

If the answer to an acknowledgement is lost with its broker, the member does not know whether the broker took it. The lag of the group shows
it at the end.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.java_program import JavaProgram
from tests.cluster.kafkatest.verifiable import VerifiableProducer, write_properties
from tests.cluster.node_process import KINDS
from tests.cluster.program import Event
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.parametrize("has_own_controller", [False], ids=[""]),
    pytest.mark.parametrize("kind", list(KINDS)),
]

PER_SECOND = 200
MEMBERS = 2
ALL_SECONDS = 180.0


class ShareConsumer(JavaProgram):
    """`VerifiableShareConsumer`.

    Attributes:
        consumed, acknowledged: the (partition, offset) of records, once for each event; also of events with an error.
    """

    def __init__(self, cluster: Cluster, folder: Path, topic: str, group: str, number: int, mode: str) -> None:
        super().__init__(
            f"share-{number}", "org.apache.kafka.tools.VerifiableShareConsumer", folder, "--bootstrap-server",
            cluster.bootstrap_servers, "--topic", topic, "--group-id", group, "--acknowledgement-mode", mode,
            "--offset-reset-strategy", "earliest",
            "--command-config", write_properties(folder / f"share-{number}.properties", {"metadata.max.age.ms": "2000"}),
        )  # fmt: skip
        self.consumed: list[tuple[int, int]] = []
        self.acknowledged: list[tuple[int, int]] = []

    def event(self, event: Event) -> None:
        into = {"records_consumed": self.consumed, "offsets_acknowledged": self.acknowledged}.get(event["name"])
        if into is not None:
            for each in event["partitions"]:
                into += [(each["partition"], offset) for offset in each["offsets"]]


@pytest.mark.parametrize("mode", ["auto", "sync"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "hard"])
def test_every_record_is_acknowledged_though_brokers_bounce(
    cluster: Cluster, tools: ToolProcess, tmp_path: Path, is_clean: bool, mode: str
) -> None:
    topic = f"shared-{mode}-{'clean' if is_clean else 'hard'}"
    create_safe_topic(cluster, topic)
    producer = VerifiableProducer(cluster, tmp_path, topic, per_second=PER_SECOND, keys=30)
    members = [ShareConsumer(cluster, tmp_path, topic, f"{topic}-group", number, mode) for number in range(MEMBERS)]
    with ExitStack() as stack:
        for program in (producer, *members):
            stack.callback(program.stop, is_clean=False)
            program.start()
        for member in members:
            member.await_that("reads", lambda member=member: len(member.consumed) > PER_SECOND)
        for node in cluster.brokers:
            bounce(cluster, node, is_clean=is_clean)
            before = [len(each.acknowledged) for each in members]
            wait_for(
                "the group goes on",
                lambda before=before: any(  # type: ignore[misc]
                    len(each.acknowledged) > then for each, then in zip(members, before, strict=True)
                ),
            )
        producer.stop()
        assert not producer.errors, producer.errors[:3]
        wanted = {(each.partition, each.offset) for each in producer.acked if each.offset >= 0}
        wait_for(
            "all is acknowledged",
            lambda: not wanted - {each for member in members for each in member.acknowledged},
            ALL_SECONDS,
        )
        check_nothing_left(cluster, tools, f"{topic}-group")


def check_nothing_left(cluster: Cluster, tools: ToolProcess, group: str) -> None:
    """Wait until kafka-share-groups counts no record of any partition that is not acknowledged."""

    def lags() -> list[str]:
        printed = tools.run(
            "share-groups", "--bootstrap-server", cluster.bootstrap_servers, "--describe", "--group", group
        )
        rows = [line.split() for line in printed.splitlines() if line.startswith(group)]
        return [row[-1] for row in rows]

    wait_for("no partition has a lag", lambda: lags() == ["0"] * 3, ALL_SECONDS)
