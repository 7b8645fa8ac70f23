"""Six brokers in three racks: a whole rack dies under load, and nothing that was acknowledged is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.node_process import KINDS, NodeProcess
from tests.cluster.replicas import check_load
from tests.cluster.topics import CREATE_SECONDS
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(900)]

RACKS = {1: "north", 2: "north", 3: "east", 4: "east", 5: "west", 6: "west"}
TOPIC = "in-three-racks"
PARTITIONS = 6
RECORDS = 100


class Racks(Cluster):
    """Two brokers, which are controllers too, in each rack."""

    def properties(self, node: NodeProcess) -> dict[str, str]:
        return super().properties(node) | {"broker.rack": RACKS[node.node_id]}


@pytest.fixture(
    params=[pytest.param(kind, marks=[pytest.mark.long] if kind == "apache-kafka" else []) for kind in KINDS]
)
def racks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Racks]:
    with Racks(request.param, tmp_path, nodes=len(RACKS)) as made:
        yield made


def test_a_rack_dies_whole_under_load(racks: Racks, tools: ToolProcess) -> None:
    admin = AdminClient({"bootstrap.servers": racks.bootstrap_servers, "log_level": 0})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic], operation_timeout=CREATE_SECONDS)[TOPIC].result(CREATE_SECONDS)
    racks.await_in_sync([TOPIC])
    for each in racks.partitions(TOPIC):
        assert {RACKS[replica] for replica in each.replicas} == set(RACKS.values()), "one replica in each rack"

    with Load(racks.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_more(RECORDS)
        ((rack, _),) = Counter(RACKS[each.leader] for each in racks.partitions(TOPIC)).most_common(1)
        dead = [node for node in racks.brokers if RACKS[node.node_id] == rack]
        for node in dead:
            node.kill()
        load.await_more(RECORDS)
        ids = {node.node_id for node in dead}
        wait_for(
            f"rack {rack} has left the in-sync replicas",
            lambda: all(not ids & set(each.isr) for each in racks.partitions(TOPIC)),
        )
        for node in dead:
            racks.start_again(node)
        racks.await_in_sync([TOPIC])
        load.await_more(RECORDS)
    assert not load.failures
    check_load(tools, racks, load)
