"""The command of `cluster restart --command`, played in the test's process: it stops and starts a node of the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.cli import rolling
from tests.cluster.cluster import Cluster


def restarted_nodes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let `restart {node} {host}` restart a node; return the list that gets each node's id then."""
    restarted: list[int] = []

    def run(words: Sequence[str], node: int, within_s: float) -> None:
        assert words == ["restart", str(node), "127.0.0.1"]
        restarted.append(node)
        cluster[node].stop()
        cluster[node].start()

    monkeypatch.setattr(rolling, "run_command", run)
    return restarted
