"""Kafka's tools print the same on a cluster of either kind, before, while and after one of its nodes is dead."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import Clusters
from tests.cluster.node_process import KINDS
from tests.cluster.tool_steps import STEPS, Step, play, why_different
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(1200)]

CALLS = [step for step in STEPS if step.change is None]
Printed = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def printed(clusters: Clusters, tools: ToolProcess, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """What each call printed, by kind."""
    folder = tmp_path_factory.mktemp("tool-files")
    found = {}
    for kind in KINDS:
        cluster = clusters.get_new(kind)
        found[kind] = play(cluster, tools, folder / kind)
    clusters.close()
    return found


@pytest.mark.parametrize("step", CALLS, ids=lambda step: step.name.replace(" ", "-"))
def test_a_tool_prints_the_same(step: Step, printed: Printed) -> None:
    different = why_different(step, printed["barnabas"][step.name], printed["apache-kafka"][step.name])
    assert not different, different
