"""`truncation_test` of kafkatest: an unclean election truncates records that a consumer has read; it goes on where the logs diverge.

The consumer reads no record twice, and does not start again from the beginning. A later consumer finds fewer records.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.verifiable import VerifiableConsumer, VerifiableProducer
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

TOPIC = "truncated"
SOME = 20
SETTINGS = {"unclean.leader.election.interval.ms": "500"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_consumer_goes_on_where_the_logs_part(
    stack: ExitStack, tmp_path: Path, tools: ToolProcess, kind: str, protocol: str
) -> None:
    # Two of three brokers go; the quorum stays.
    cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes", has_own_controller=True, settings=SETTINGS))
    create_topic(cluster, TOPIC, [[1, 2]])
    producer = VerifiableProducer(cluster, tmp_path, TOPIC, per_second=20)
    consumer = VerifiableConsumer(cluster, tmp_path, TOPIC, "truncation", protocol, is_verbose=True)
    for program in (producer, consumer):
        stack.callback(program.stop, is_clean=False)
        program.start()
    consumer.await_more(SOME)
    first, second = cluster[1], cluster[2]
    first.stop()
    consumer.await_more(SOME)
    second.stop()
    wait_for("the partition has no leader", lambda: cluster.partition(TOPIC, 0).leader < 0)
    cluster.start_again(first)
    read = len(consumer.values)
    assert cluster.partition(TOPIC, 0).leader < 0, "a replica that is not in sync leads"
    printed = tools.run(
        "configs", "--bootstrap-server", cluster[3].bootstrap_servers, "--alter", "--entity-type", "topics",
        "--entity-name", TOPIC, "--add-config", "unclean.leader.election.enable=true",
    )  # fmt: skip
    assert printed.startswith("exit 0"), printed
    wait_for("the replica that was out of sync leads", lambda: cluster.partition(TOPIC, 0).leader == 1)
    cluster.start_again(second)
    cluster.await_in_sync([TOPIC])
    consumer.await_more(SOME)
    producer.stop()
    there = [int(value) for _, value in read_partition(cluster.bootstrap_servers, TOPIC, 0)]
    consumer.await_that("all is read", lambda: consumer.values[-1:] == there[-1:])
    consumer.stop()
    assert len(consumer.values) == len(set(consumer.values)), "records were read twice"
    assert set(there) < set(consumer.values), "the consumer has missed records, or none were truncated"
    lost = sorted(set(consumer.values) - set(there))
    assert set(lost) <= set(consumer.values[:read]), f"records are lost that were written after the election: {lost}"
