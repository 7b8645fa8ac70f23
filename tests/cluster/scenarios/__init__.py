"""One function a scenario, played on a cluster whose nodes are all up; each names its topics for itself.

A scenario that needs Kafka's tools gets them; they run in one JVM.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.cluster import Cluster
from tests.cluster.scenarios import (
    any_node,
    controller_killed,
    group_coordinator_killed,
    leader_killed,
    node_paused,
    rolling_restart,
    transactions,
    wiped_node,
)
from tests.conform.tool_process import ToolProcess

Scenario = Callable[[Cluster, ToolProcess], None]

SCENARIOS: dict[str, Scenario] = {
    "any node": any_node.play,
    "leader killed": leader_killed.play,
    "coordinator of a classic group killed": group_coordinator_killed.play_classic,
    "coordinator of a consumer group killed": group_coordinator_killed.play_consumer,
    "transactions": transactions.play,
    "wiped node": wiped_node.play,
    "controller killed": controller_killed.play,
    "leader paused": node_paused.play,
    "rolling restart": rolling_restart.play,
}
