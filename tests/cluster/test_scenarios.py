"""Every scenario on both kinds of cluster: what Apache Kafka keeps under these faults, barnabas keeps."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import KINDS
from tests.cluster.scenarios import SCENARIOS
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(900)]

# With a separate controller brokers take another path through the code; three scenarios show that it works.
WITH_A_CONTROLLER = ("any node", "leader killed", "controller killed")
# In an order that needs one cluster of each kind and shape.
CASES = [
    pytest.param(
        kind,
        own,
        name,
        id=f"{kind}{'-with-a-controller' if own else ''}-{name.replace(' ', '-')}",
        # Apache Kafka shows that a scenario demands only what Kafka promises; that does not change from run to run.
        marks=[pytest.mark.long] if kind == "apache-kafka" else [],
    )
    for kind in KINDS
    for own, names in ((False, tuple(SCENARIOS)), (True, WITH_A_CONTROLLER))
    for name in names
]


@pytest.mark.parametrize(("kind", "has_own_controller", "name"), CASES)
def test_scenario(name: str, cluster: Cluster, tools: ToolProcess) -> None:
    SCENARIOS[name](cluster, tools)
