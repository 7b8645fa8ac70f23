"""The clusters that scenarios share: one of each kind and shape, replaced when a scenario has failed on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.conform.tool_process import ToolProcess

FAILED = pytest.StashKey[bool]()


class Clusters:
    """Makes clusters when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, bool], Cluster] = {}
        self._count = 0

    def get(self, kind: str, *, has_own_controller: bool) -> Cluster:
        """Return a cluster whose nodes are all up and whose replicas are all in sync."""
        found = self._made.get((kind, has_own_controller))
        if found is None:
            # Another cluster would only take memory.
            self.close()
            self._count += 1
            folder = self._folder / f"{kind}-{self._count}"
            found = self._made[kind, has_own_controller] = Cluster(kind, folder, has_own_controller=has_own_controller)
        found.repair()
        return found

    def get_new(self, kind: str) -> Cluster:
        """Return a cluster that nobody has used."""
        self.close()
        return self.get(kind, has_own_controller=False)

    def close(self) -> None:
        for cluster in self._made.values():
            cluster.close()
        self._made.clear()


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    made = Clusters(tmp_path_factory.mktemp("clusters"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolProcess]:
    process = ToolProcess(tmp_path_factory.mktemp("tools") / "tools.log")
    try:
        yield process
    finally:
        process.close()


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, clusters: Clusters, kind: str, has_own_controller: bool
) -> Iterator[Cluster]:
    """The cluster of this kind and shape; after a failure it is closed, so the next test gets a new one."""
    found = None
    try:
        found = clusters.get(kind, has_own_controller=has_own_controller)
        yield found
    finally:
        if found is None or request.node.stash.get(FAILED, False):
            if found is not None and os.environ.get("BARNABAS_SHOW_NODES"):
                print(*(f"{node}:\n{node.last_lines(40)}" for node in found.nodes.values()), sep="\n\n")
            clusters.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":  # type: ignore[attr-defined]
        item.stash[FAILED] = report.failed  # type: ignore[attr-defined]
    return report
