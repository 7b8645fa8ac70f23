"""Three voters of `controller.quorum.voters` become voters that can change, by Kafka's tools: the same on either kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import KINDS
from tests.cluster.tool_steps import neutral, quorum_line
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def play(cluster: Cluster, tools: ToolProcess, folder: Path) -> dict[str, str]:
    """Return what each call of a tool printed, with its exit code."""
    printed: dict[str, str] = {}

    def call(name: str, tool: str, *words: str) -> None:
        def ask() -> str | None:
            """A broker of Apache Kafka may not know yet who leads."""
            found = tools.run(tool, "--bootstrap-server", cluster.bootstrap_servers, *words)
            return None if "NotLeaderOrFollowerException" in found else found

        lines = neutral(wait_for("the leader answers", ask), cluster, folder).splitlines()
        features = [line.partition("Epoch")[0] for line in lines if line.startswith("Feature: kraft.version ")]
        printed[name] = "\n".join(
            [*features, *(quorum_line(line) for line in lines if not line.startswith("Feature: "))]
        )

    def remove(name: str) -> None:
        words = ("--controller-id", "3", "--controller-directory-id", cluster.directory_id(3))
        call(name, "metadata-quorum", "remove-controller", *words)

    call("describe 0", "features", "describe")
    call("upgrade to 2", "features", "upgrade", "--feature", "kraft.version=2")
    call("dry run", "features", "upgrade", "--feature", "kraft.version=1", "--dry-run")
    remove("remove too early")
    call("upgrade", "features", "upgrade", "--feature", "kraft.version=1")
    call("describe 1", "features", "describe")
    call("upgrade again", "features", "upgrade", "--feature", "kraft.version=1")
    call("downgrade", "features", "downgrade", "--feature", "kraft.version=0")
    call("unsafe downgrade", "features", "downgrade", "--feature", "kraft.version=0", "--unsafe")
    call("disable", "features", "disable", "--feature", "kraft.version")
    cluster.await_quorum({1, 2, 3}, set())
    call("status", "metadata-quorum", "describe", "--status")
    remove("remove")
    cluster.await_quorum({1, 2}, {3})
    # The files still name three voters, and the log two.
    for node in cluster.nodes.values():
        node.kill()
    cluster.start()
    cluster.await_quorum({1, 2}, {3})
    create_safe_topic(cluster, "orders")
    call("describe after a restart", "features", "describe")
    return printed


def test_the_tools_print_the_same(tools: ToolProcess, tmp_path: Path) -> None:
    played: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        with Cluster(kind, tmp_path / kind) as cluster:
            played[kind] = play(cluster, tools, tmp_path)
    assert played["barnabas"] == played["apache-kafka"]
