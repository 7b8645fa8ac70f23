"""The faults of a cluster as they are ordered, merged and removed; `test_cluster` and `test_fault_api` have them in a cluster."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from barnabas.embedded.cluster_faults import ClusterFaults, Nodes
from barnabas.embedded.fault_plan import NO_FAULTS, FaultPlan


class ThreeNodes(ClusterFaults):
    """Three nodes that only get plans."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.told: list[FaultPlan] = []

    def _node_ids(self) -> Collection[int]:
        return (1, 2, 3)

    def _set(self, nodes: Nodes) -> set[int]:
        return {nodes} if isinstance(nodes, int) else set(nodes)

    def _change(self, plan: FaultPlan) -> None:
        self.told.append(plan)

    def begin(self) -> None:
        self._forget_faults(self._folder)


@pytest.fixture
def cluster(tmp_path: Path) -> ThreeNodes:
    return ThreeNodes(tmp_path)


def test_faults_add_up_and_each_can_be_removed(cluster: ThreeNodes) -> None:
    cut = cluster.cut(1, {2, 3})
    parted = cluster.partition({1, 2}, 3)
    assert cluster.told[-1].cuts == {(1, 2), (1, 3), (3, 1), (2, 3), (3, 2)}
    assert [fault.id for fault in cluster.faults] == [1, 2]
    assert cut.settings == {"kind": "cut", "from": [1], "to": [2, 3]}
    assert parted.settings == {"kind": "partition", "left": [1, 2], "right": [3]}
    cut.remove()
    cut.remove()
    assert cluster.told[-1].cuts == {(1, 3), (3, 1), (2, 3), (3, 2)}
    cluster.heal()
    assert cluster.told[-1] == NO_FAULTS
    told = len(cluster.told)
    parted.remove()
    assert (len(cluster.told), cluster.faults) == (told, ())


def test_a_delay_replaces_those_that_it_covers(cluster: ThreeNodes) -> None:
    cluster.delay((1, 2), 0.2)
    of_one = cluster.delay(1, 0.5)
    assert cluster.faults == (of_one,)
    plan = cluster.told[-1]
    assert plan.delays == dict.fromkeys([(1, 2), (2, 1), (1, 3), (3, 1)], 0.5)
    assert [fault.seconds for fault in plan.requests[1]] == [0.5]
    cluster.delay((1, 2), 0)
    assert (cluster.told[-1].delays[1, 2], cluster.told[-1].delays[1, 3]) == (0, 0.5)
    cluster.delay(1, 0)
    assert not any(cluster.told[-1].delays.values())
    assert not cluster.told[-1].requests


def test_disks_and_clocks(cluster: ThreeNodes) -> None:
    full, slow = cluster.fill_disk(2), cluster.slow_disk(2, 0.1)
    ahead = cluster.move_clock(3600, of={1, 2})
    cluster.move_clock(-60)
    plan = cluster.told[-1]
    assert (plan.disks[2].slow_s, len(plan.disks[2].full)) == (0.1, 1)
    assert {node: clock.seconds for node, clock in plan.clocks.items()} == {1: 3540.0, 2: 3540.0, 3: -60.0}
    assert (full.settings["kind"], slow.settings["kind"]) == ("disk_full", "disk_slow")
    assert ahead.settings == {"kind": "clock", "nodes": [1, 2], "seconds": 3600}
    with pytest.raises(ValueError, match="at most 100 years"):
        cluster.move_clock(float("inf"))


def test_requests_of_a_node_or_of_all(cluster: ThreeNodes) -> None:
    of_all = cluster.fail("Fetch", "UNKNOWN_SERVER_ERROR", nth=2)
    cluster.fail("Fetch", "UNKNOWN_SERVER_ERROR", node=2)
    requests = cluster.told[-1].requests
    assert [len(requests[node]) for node in (1, 2, 3)] == [1, 2, 1]
    assert (requests[1][0].number, requests[2][1].number) == (1, 2)
    # The first ticket is that of the request before the second one.
    Path(requests[1][0].tickets).write_bytes(b"..")
    assert of_all.hits == 1


def test_a_cluster_begins_without_the_counts_of_an_earlier_one(cluster: ThreeNodes, tmp_path: Path) -> None:
    (tmp_path / "fault-1").write_bytes(b"...")
    cluster.begin()
    assert cluster.cut(1, 2).hits == 0
