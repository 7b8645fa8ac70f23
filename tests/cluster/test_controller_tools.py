"""Kafka's tools that dial the controllers (`--bootstrap-controller`) print the same on a cluster of either kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.conftest import Clusters
from tests.cluster.node_process import KINDS
from tests.cluster.tool_steps import Step, call, neutral, why_different
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(1200)]

BROKER_1 = "--entity-type brokers --entity-name 1"
CALLS = (
    call("cluster id", "cluster", "cluster-id"),
    call("endpoints", "cluster", "list-endpoints", compare="sorted"),
    call("unregister a node that is not there", "cluster", "unregister --id 9"),
    call("quorum status", "metadata-quorum", "describe --status", compare="quorum"),
    call("quorum replication", "metadata-quorum", "describe --replication", compare="quorum"),
    call("remove a voter", "metadata-quorum", "remove-controller --controller-id 1 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAw"),
    call("features", "features", "describe", compare="features"),
    call("upgrade a feature", "features", "upgrade --feature group.version=1"),
    call("upgrade a feature too far", "features", "upgrade --feature group.version=9"),
    call("downgrade a feature", "features", "downgrade --feature group.version=0"),
    call("upgrade it again", "features", "upgrade --feature group.version=1"),
    call("describe a node", "configs", f"--describe {BROKER_1}"),
    call("configure a node", "configs", f"--alter {BROKER_1} --add-config log.cleaner.threads=2"),
    call("describe the node again", "configs", f"--describe {BROKER_1}"),
    call("describe the defaults", "configs", "--describe --entity-type brokers --entity-default"),
    call("reassignments", "reassign-partitions", "--list"),
)  # fmt: skip

Printed = dict[str, dict[str, str]]


def play(cluster: Cluster, tools: ToolProcess, folder: Path) -> dict[str, str]:
    """Make every call in order; return what each printed, both streams, with its exit code."""
    addresses = ",".join(f"127.0.0.1:{node.controller_port}" for node in cluster.controllers)

    def run(step: Step) -> str:
        to = ("--bootstrap-controller", addresses)
        # This tool wants its action first.
        args = (*step.args, *to) if step.tool == "cluster" else (*to, *step.args)
        return tools.run(step.tool, *args)

    named, everybody = {step.name: step for step in CALLS}, len(cluster.controllers)
    again = named["describe the node again"]
    wait_for("every controller has registered", lambda: run(named["endpoints"]).count(" controller") == everybody)
    printed = {}
    for step in CALLS:
        if step is again:
            # A node of Apache Kafka shows the new value as a synonym before it has taken it as its own.
            wait_for("the node has taken its setting", lambda: "threads=2 sensitive" in run(again))
        printed[step.name] = neutral(run(step), cluster, folder)
    return printed


@pytest.fixture(scope="module")
def printed(clusters: Clusters, tools: ToolProcess, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """What each call printed, by kind."""
    folder = tmp_path_factory.mktemp("controller-tools")
    found = {kind: play(clusters.get_new(kind), tools, folder) for kind in KINDS}
    clusters.close()
    return found


@pytest.mark.parametrize("step", CALLS, ids=lambda step: step.name.replace(" ", "-"))
def test_a_tool_prints_the_same(step: Step, printed: Printed) -> None:
    different = why_different(step, printed["barnabas"][step.name], printed["apache-kafka"][step.name])
    assert not different, different
