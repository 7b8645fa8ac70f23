"""The row of "Killed, or without power" in docs/clusters.md about clocks, on real processes of both programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.clocks import Clocks, NoClocks
from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK, Load
from tests.cluster.node_process import KINDS
from tests.cluster.records import check_exactly_once, read_partition
from tests.cluster.scenarios.transactions import TOPIC as TRANSACTED
from tests.cluster.scenarios.transactions import Transactions, check_atomic, check_nothing_hangs
from tests.cluster.topics import create_safe_topic, create_topic
from tests.cluster.waiting import wait_for

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("kind", list(KINDS)),
]

TOPIC = "kept"
PARTITIONS = 3
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
RECORDS = 200
HOUR = 3600
SETTINGS = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "1000"}
SAFE = {"min.insync.replicas": "2", "retention.ms": str(HOUR * 1000)}
NAMED = "The clock of this machine is set back, or was ahead: it says "


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends, after the test, what the test has put there."""
    with ExitStack() as made:
        yield made


def started(stack: ExitStack, kind: str, folder: Path) -> tuple[Cluster, Clocks]:
    """Return a cluster whose clocks can be set, with a topic that keeps records for an hour."""
    cluster = Cluster(kind, folder, settings=SETTINGS)
    try:
        clocks = Clocks(cluster)
    except NoClocks as error:
        pytest.skip(f"no clock can be set here: {error}")
    stack.enter_context(cluster)
    create_topic(cluster, TOPIC, REPLICAS, SAFE)
    return cluster, clocks


def answer(cluster: Cluster, partition: int) -> str:
    """Return the name of the error that a record of now gets; empty if it is acknowledged."""
    found: list[str] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **QUICK})
    producer.produce(
        TOPIC,
        "0",
        partition=partition,
        on_delivery=lambda error, _: found.append("" if error is None else error.name()),
    )
    assert not producer.flush(60)
    return found[0]


def test_clocks_are_set_back_under_load(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """By 50 minutes, on one node, on all, and right again: nothing is lost, refused or torn."""
    cluster, clocks = started(stack, kind, tmp_path)
    create_safe_topic(cluster, TRANSACTED)
    transactions = Transactions(cluster.bootstrap_servers)
    nodes = list(cluster.nodes.values())
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        for seconds, of in ((0, nodes), (-50 * 60, nodes[:1]), (-50 * 60, nodes), (0, nodes)):
            clocks.set(seconds, *of)
            load.await_more(RECORDS)
            transactions.several()
    check_exactly_once(cluster.bootstrap_servers, load)
    check_nothing_hangs(cluster)
    check_atomic(cluster, transactions.tried)


def test_a_clock_is_two_hours_off(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """Behind, the leader refuses records of now, and a start says why; ahead, it deletes the records of its partitions as too old."""
    cluster, clocks = started(stack, kind, tmp_path)
    first = cluster[1]
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_more(RECORDS)
    clocks.set(-2 * HOUR, first)
    assert [answer(cluster, index) for index in range(PARTITIONS)] == ["INVALID_TIMESTAMP", "", ""]
    first.kill()
    cluster.start_again(first)
    assert (NAMED in first.log.read_text()) is (kind == "barnabas")
    clocks.set(0, first)
    cluster.await_in_sync([TOPIC])
    leader = cluster.leader_of(TOPIC, 0)
    counts = [len(read_partition(cluster.bootstrap_servers, TOPIC, index)) for index in range(PARTITIONS)]
    acknowledged = [sum(each.partition == index for each in load.acknowledged) for index in range(PARTITIONS)]
    assert counts == [acknowledged[0], acknowledged[1] + 1, acknowledged[2] + 1]

    clocks.set(2 * HOUR, leader)
    wait_for("the leader has deleted its records", lambda: not read_partition(cluster.bootstrap_servers, TOPIC, 0), 60)
    led = [cluster.leader_of(TOPIC, index) is leader for index in range(PARTITIONS)]
    left = [len(read_partition(cluster.bootstrap_servers, TOPIC, index)) for index in range(PARTITIONS)]
    assert [count for count, is_led in zip(left, led, strict=True) if not is_led] == [
        count for count, is_led in zip(counts, led, strict=True) if not is_led
    ]
