"""One of two directories of a node breaks while a producer writes: the node stays, others lead what was in it, and a new disk fills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from tests.cluster.cluster import Cluster
from tests.cluster.judged_load import judged_load
from tests.cluster.load import Load
from tests.cluster.loop_disk import LoopDisk, NoLoopDisk
from tests.cluster.node_process import KINDS
from tests.cluster.topics import SAFE, create_topic
from tests.cluster.waiting import wait_for

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("kind", list(KINDS)),
]

PARTITIONS = 6
NODE = 2
RECORDS = 300


@pytest.fixture
def cluster(kind: str, tmp_path: Path) -> Iterator[tuple[Cluster, LoopDisk]]:
    """Three nodes; the second has two directories, of which one is on a disk of its own."""
    with ExitStack() as stack:
        made = Cluster(kind, tmp_path)
        node = made[NODE]
        try:
            disk = LoopDisk(node.folder / "disk.ext4", node.folder / "disk")
        except NoLoopDisk as error:
            pytest.skip(f"no disk can break here: {error}")
        stack.callback(disk.unmount)
        node.write_config({**made.properties(node), "log.dirs": f"{node.data_dir},{disk.top / 'logs'}"})
        yield stack.enter_context(made), disk


def roles(cluster: Cluster) -> tuple[list[int], list[int]]:
    """Return the partitions that the node leads, and those for which it is in sync."""
    found = cluster.partitions("kept")
    leads = [each.partition for each in found if each.leader == NODE]
    return leads, [each.partition for each in found if NODE in each.isr]


def on_disk(cluster: Cluster, disk: LoopDisk) -> list[int]:
    """Return the partitions that the node has on the disk."""
    with Admin(cluster[NODE].bootstrap_servers) as admin:
        found = admin.describe_log_dirs([NODE])[NODE]
    assert isinstance(found, list), found
    (there,) = [each for each in found if each.path == str(disk.top / "logs")]
    return sorted(each.partition.partition for each in there.replicas if each.partition.topic == "kept")


def errors(cluster: Cluster) -> Callable[[], list[str]]:
    def ask() -> list[str]:
        with Admin(cluster[NODE].bootstrap_servers) as admin:
            found = admin.describe_log_dirs([NODE])[NODE]
        assert isinstance(found, list), found
        return [each.error.code.name for each in found if each.error is not None]

    return ask


def test_the_node_goes_on_without_it(cluster: tuple[Cluster, LoopDisk]) -> None:
    nodes, disk = cluster
    create_topic(nodes, "kept", [[NODE, 1, 3] for _ in range(PARTITIONS)], SAFE)
    # Apache Kafka answers before the logs are made.
    lost = wait_for("half of them are on the disk", lambda: each if len(each := on_disk(nodes, disk)) == 3 else None)
    kept = sorted(set(range(PARTITIONS)) - set(lost))
    with Load(nodes.bootstrap_servers, "kept", PARTITIONS) as load:
        load.await_more(RECORDS)
        disk.shut_down()
        wait_for("others lead what was on the disk", lambda: roles(nodes) == (kept, kept))
        assert nodes[NODE].is_up
        assert errors(nodes)() == ["KAFKA_STORAGE_ERROR"]
        load.await_more(RECORDS)

        nodes[NODE].kill()
        disk.unmount()
        disk.make()
        disk.mount()
        nodes[NODE].format_new_directories(nodes.cluster_id)
        nodes[NODE].start()
        nodes.await_in_sync(["kept"])
        load.await_more(RECORDS)
        assert errors(nodes)() == []
    assert load.failures == []
    assert judged_load(nodes.bootstrap_servers, load, nodes.folder).problems == {}
    assert len(list((disk.top / "logs").glob("kept-*"))) == len(lost)
