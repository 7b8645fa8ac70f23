"""Rows of "Killed, or without power" in docs/clusters.md that take the power from the machines of real processes, of both programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.loop_disk import NoLoopDisk
from tests.cluster.node_process import KINDS
from tests.cluster.power import Power
from tests.cluster.records import check_exactly_once, read_partition
from tests.cluster.topics import create_topic

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("kind", list(KINDS)),
]

PARTITIONS = 3
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
RECORDS = 300
STARTED_AGAIN = "What the last run wrote at last may be lost: the machine has started again since"
NOTHING_LOST = "Nothing is lost that the last run wrote: the machine has not started again since"
PLAIN, FLUSHED, SYNCED = "plain", "flushed", "synced"
CONFIGS = {PLAIN: {}, FLUSHED: {"flush.messages": "1"}, SYNCED: {"barnabas.flush.before.ack": "true"}}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends, after the test, what the test has put there."""
    with ExitStack() as made:
        yield made


def started(
    stack: ExitStack, kind: str, folder: Path, *, has_own_controller: bool = False
) -> tuple[Cluster, Power, list[str]]:
    """Return a cluster on disks of its own, and its topics, one at each setting that it knows."""
    cluster = Cluster(kind, folder, has_own_controller=has_own_controller)
    try:
        power = stack.enter_context(Power(cluster))
    except NoLoopDisk as error:
        pytest.skip(f"no power can be cut here: {error}")
    stack.enter_context(cluster)
    topics = [PLAIN, FLUSHED] + [SYNCED] * (kind == "barnabas")
    for topic in topics:
        create_topic(cluster, topic, REPLICAS, {"min.insync.replicas": "2", **CONFIGS[topic]})
    for node in cluster.nodes.values():
        # Apache Kafka's tool does not sync what it formats: a machine that loses its power soon after does not start again.
        power.write_out(node)
    return cluster, power, topics


def write(cluster: Cluster, topics: list[str]) -> dict[str, Load]:
    """Return what was acknowledged to a producer of each topic, one after the other; the last moment is the first topic's."""
    loads = {}
    for topic in reversed(topics):
        with Load(cluster.bootstrap_servers, topic, PARTITIONS) as load:
            load.await_more(RECORDS)
        assert not load.failures
        loads[topic] = load
    return loads


def await_alone(cluster: Cluster, topics: list[str]) -> None:
    """Wait until node 1 is the only one in sync, since the sessions of the others have ended; it is the last known leader from then on."""
    for topic in topics:
        for index in range(PARTITIONS):
            cluster.await_partition(topic, index, lambda found: found.leader == 1 and found.isr == [1])


def start_all_again(cluster: Cluster, topics: list[str]) -> None:
    """Node 1 comes back last."""
    for node in (cluster[2], cluster[3], cluster[1]):
        cluster.start_again(node)
    cluster.await_in_sync(topics)


def missing(cluster: Cluster, load: Load) -> int:
    """Count the acknowledged records that are not there."""
    lost = 0
    for index in range(PARTITIONS):
        there = {int(value) for _, value in read_partition(cluster.bootstrap_servers, load.topic, index)}
        lost += sum(each.partition == index and each.number not in there for each in load.acknowledged)
    print(f"{cluster.kind}: {load.topic} has lost {lost} of {len(load.acknowledged)} acknowledged records")
    return lost


def test_all_machines_lose_their_power(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """A setting that syncs keeps every record; without one, both programs lose what the disks had not got yet."""
    cluster, power, topics = started(stack, kind, tmp_path)
    loads = write(cluster, topics)
    power.cut(*cluster.nodes.values())
    cluster.start()
    cluster.await_in_sync(topics)
    lost = {topic: missing(cluster, load) for topic, load in loads.items()}
    assert lost.pop(PLAIN) > 0
    assert not any(lost.values())
    assert all((STARTED_AGAIN in node.log.read_text()) is (kind == "barnabas") for node in cluster.nodes.values())


def test_one_machine_loses_its_power(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """Two in turn, while a producer writes."""
    cluster, power, _ = started(stack, kind, tmp_path)
    with Load(cluster.bootstrap_servers, PLAIN, PARTITIONS) as load:
        for node in (cluster[1], cluster[2]):
            load.await_more(RECORDS)
            power.cut(node)
            load.await_more(RECORDS)
            cluster.start_again(node)
            cluster.await_in_sync([PLAIN])
    check_exactly_once(cluster.bootstrap_servers, load)


def test_two_are_killed_and_the_third_loses_its_power(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """The killed come back first. Apache Kafka counts their replicas out all the same, and elects the one whose disk has forgotten."""
    cluster, power, topics = started(stack, kind, tmp_path, has_own_controller=True)
    loads = write(cluster, topics)
    for node in (cluster[2], cluster[3]):
        node.kill()
    await_alone(cluster, topics)
    power.cut(cluster[1])
    start_all_again(cluster, topics)
    lost = {topic: missing(cluster, load) for topic, load in loads.items()}
    assert (lost.pop(PLAIN) > 0) is (kind == "apache-kafka")
    assert not any(lost.values())
    if kind == "barnabas":
        assert STARTED_AGAIN in cluster[1].log.read_text()
        assert all(NOTHING_LOST in cluster[each].log.read_text() for each in (2, 3))


def test_all_lose_their_power_and_one_disk_has_everything(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """It is not the last known leader's, which Apache Kafka elects. barnabas elects the longest log."""
    cluster, power, topics = started(stack, kind, tmp_path, has_own_controller=True)
    loads = write(cluster, topics)
    power.write_out(cluster[3])
    power.cut(cluster[2], cluster[3])
    await_alone(cluster, topics)
    power.cut(cluster[1])
    start_all_again(cluster, topics)
    lost = {topic: missing(cluster, load) for topic, load in loads.items()}
    assert (lost.pop(PLAIN) > 0) is (kind == "apache-kafka")
    assert not any(lost.values())
