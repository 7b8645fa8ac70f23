"""One barnabas broker beside two brokers and three controllers of Apache Kafka: it leads and follows, dies and returns, and so do they.

Whichever kind a coordinator, a leader or the active controller is of, records, transactions and groups go on, and replicas have the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.node_process import NodeProcess
from tests.cluster.replicas import check_load, check_replicas_identical
from tests.cluster.scenarios import group_coordinator_killed, transactions
from tests.cluster.topics import create_safe_topic, create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

TOPIC = "mixed"
RECORDS = 300
GUEST = 3
# On a busy machine five JVMs take longer to start than a broker waits for its controllers.
SETTINGS = {"initial.broker.registration.timeout.ms": "300000"}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("mixed-quorum")
    with Cluster(
        "apache-kafka", folder, has_own_controller=True, controllers=3, others={GUEST: "barnabas"}, settings=SETTINGS
    ) as cluster:
        yield cluster


def kill_active_controller(cluster: Cluster) -> NodeProcess:
    """Kill it, and wait until another one is active."""
    killed = cluster.active_controller()
    killed.kill()
    wait_for("another controller is active", lambda: cluster.active_controller() is not killed)
    return killed


def test_it_leads_and_follows_and_so_do_they(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, TOPIC)
    with Load(mixed.bootstrap_servers, TOPIC, 3) as load:
        load.await_more(RECORDS)
        for node in (mixed[GUEST], mixed[1], mixed[2], mixed[GUEST]):
            node.kill()
            load.await_more(RECORDS)
            mixed.start_again(node)
            mixed.await_in_sync([TOPIC])
            load.await_more(RECORDS)
    check_load(tools, mixed, load)


def test_it_follows_one_active_controller_after_the_other(mixed: Cluster, tools: ToolProcess) -> None:
    topic = "through-elections"
    create_safe_topic(mixed, topic)
    with Load(mixed.bootstrap_servers, topic, 3) as load:
        for number in range(3):
            killed = kill_active_controller(mixed)
            load.await_more(RECORDS)
            # What the new one writes reaches the guest.
            create_topic(mixed, f"after-election-{number}", [[GUEST, 1], [2, GUEST]])
            mixed[GUEST].kill()
            load.await_more(RECORDS)
            mixed.start_again(mixed[GUEST])
            mixed.start_again(killed)
            mixed.await_in_sync([topic, f"after-election-{number}"])
            load.await_more(RECORDS)
    check_load(tools, mixed, load)


def test_transactions_and_their_coordinators(mixed: Cluster, tools: ToolProcess) -> None:
    mixed.repair()
    transactions.play(mixed, tools)
    check_replicas_identical(tools, mixed, transactions.TOPIC)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_and_their_coordinators(mixed: Cluster, tools: ToolProcess, protocol: str) -> None:
    mixed.repair()
    play = group_coordinator_killed.play_classic if protocol == "classic" else group_coordinator_killed.play_consumer
    play(mixed, tools)
