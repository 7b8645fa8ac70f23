"""Three killed processes are not three machines without power: no election is unclean, and a copied disk claims nothing."""

from __future__ import annotations

import re
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.records import read_partition
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PARTITIONS = 30
TOPIC = "kept"
KEPT = "Nothing is lost that the last run wrote: the machine has not started again since"
UNCLEAN = re.compile(r"^kafka_controller_controllerstats_uncleanleaderelections_total (\d+)", re.M)
SCRAPED = re.compile(r"http://(127\.0\.0\.1:\d+)/metrics")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster("barnabas", tmp_path, settings={"barnabas.metrics.listen": "127.0.0.1:0"}) as made:
        yield made


def unclean_elections(cluster: Cluster) -> list[int]:
    found = []
    for node in cluster.nodes.values():
        address = SCRAPED.findall(node.log.read_text())[-1]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            found += [int(value) for value in UNCLEAN.findall(answer.read().decode())]
    return found


def write(cluster: Cluster) -> Load:
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        wait_for("2,000 records are acknowledged", lambda: len(load.acknowledged) >= 2000)
    return load


def test_nothing_is_lost_when_all_are_killed_and_a_copy_has_to_catch_up(cluster: Cluster) -> None:
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
    create_topic(cluster, TOPIC, replicas, {"min.insync.replicas": "2"})
    load = write(cluster)
    nodes = list(cluster.nodes.values())
    for _ in range(2):
        for node in nodes:
            node.kill()
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready()
        cluster.await_in_sync([TOPIC])
    assert [node.log.read_text().count(KEPT) for node in nodes] == [2, 2, 2]
    assert sum(unclean_elections(cluster)) == 0
    acknowledged = sorted(load.acknowledged)
    counted = sum(len(read_partition(cluster.bootstrap_servers, TOPIC, index)) for index in range(PARTITIONS))
    assert counted == len(acknowledged), "the producer is idempotent, and nobody else writes"

    third = cluster[3]
    third.kill()
    copied = third.data_dir.rename(third.data_dir.with_name("replaced"))
    shutil.copytree(copied, third.data_dir)
    cluster.start_again(third)
    assert "What the last run wrote at last may be lost: the directory is a copy" in third.log.read_text()
    cluster.await_in_sync([TOPIC])
    assert sum(unclean_elections(cluster)) == 0
