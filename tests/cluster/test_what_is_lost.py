"""Rows of "Killed, or without power" in docs/clusters.md that real processes can show, on Apache Kafka and on barnabas.

All processes are killed; a node gets an older copy of its directory; a second node starts with the id of one that serves. No acknowledged
record is lost, on either kind. No real process can lose the power of its machine here: the simulator's nodes can.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.node_process import KINDS
from tests.cluster.records import check_exactly_once
from tests.cluster.topics import create_topic

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("kind", list(KINDS)),
]

TOPIC = "kept"
PARTITIONS = 6
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
RECORDS = 200
END_SECONDS = 180
REFUSED = {
    "apache-kafka": "Another broker is registered with that broker id",
    "barnabas": "error: another process serves as node 3 (stop it, or",
}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends, after the test, what the test has put there."""
    with ExitStack() as made:
        yield made


def started(stack: ExitStack, kind: str, folder: Path, *, has_own_controller: bool = False) -> Cluster:
    """Return a cluster with the topic."""
    cluster = stack.enter_context(Cluster(kind, folder, has_own_controller=has_own_controller))
    create_topic(cluster, TOPIC, REPLICAS, {"min.insync.replicas": "2"})
    return cluster


def unclean_elections(cluster: Cluster) -> int:
    """Count them in the logs of Apache Kafka's controllers; each logs all of them, and again when it starts."""
    logs = [node.log.read_text(errors="replace") for node in cluster.controllers]
    return len({each for text in logs for each in re.findall(rf"UNCLEAN partition change for {TOPIC}-.*", text)})


def test_all_processes_are_killed(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    cluster = started(stack, kind, tmp_path)
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_more(RECORDS)
        for _ in range(2):
            for node in cluster.nodes.values():
                node.kill()
            cluster.start()
            load.await_more(RECORDS)
            cluster.await_in_sync([TOPIC])
    check_exactly_once(cluster.bootstrap_servers, load)
    # For barnabas `test_killed_nodes` reads the metric, which is 0.
    assert (unclean_elections(cluster) > 0) is (kind == "apache-kafka")


def test_a_killed_node_gets_an_older_copy_of_its_directory(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """Afterwards the others die one by one, so that the restored node leads."""
    cluster = started(stack, kind, tmp_path)
    third, copy = cluster[3], tmp_path / "copy"
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_more(RECORDS)
        third.stop()
        shutil.copytree(third.data_dir, copy)
        cluster.start_again(third)
        cluster.await_in_sync([TOPIC])
        load.await_more(RECORDS)
        third.kill()
        third.wipe()
        shutil.copytree(copy, third.data_dir)
        cluster.start_again(third)
        cluster.await_in_sync([TOPIC])
        for each in (cluster[1], cluster[2]):
            each.kill()
            load.await_more(RECORDS)
            cluster.start_again(each)
            cluster.await_in_sync([TOPIC])
    check_exactly_once(cluster.bootstrap_servers, load)


def test_a_second_node_with_the_id_of_one_that_serves_is_refused(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    cluster = started(stack, kind, tmp_path / "nodes", has_own_controller=True)
    second = KINDS[kind](tmp_path / "second", 3, ("broker",))
    second.write_config(cluster.properties(second) | {"initial.broker.registration.timeout.ms": "5000"})
    stack.callback(second.kill)
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_more(RECORDS)
        second.format(cluster.cluster_id)
        second.launch()
        assert second.process is not None
        assert second.process.wait(END_SECONDS) != 0
        load.await_more(RECORDS)
    assert REFUSED[kind] in "\n".join(node.log.read_text() for node in (second, *cluster.controllers))
    assert cluster[3].is_up
    check_exactly_once(cluster.bootstrap_servers, load)
