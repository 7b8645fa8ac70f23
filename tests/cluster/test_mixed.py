"""A barnabas broker among Apache Kafka's controllers and brokers, and an Apache Kafka broker in a barnabas cluster.

Leaders and followers of both kinds replicate from each other; each is killed and returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_safe_topic
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(900)]

TOPIC = "mixed"
RECORDS = 100
GUEST = 3


@pytest.fixture(scope="module", params=["apache-kafka", pytest.param("barnabas", marks=pytest.mark.long)])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller and brokers 1 and 2 of one kind, and broker 3 of the other."""
    host: str = request.param
    guest = "barnabas" if host == "apache-kafka" else "apache-kafka"
    folder: Path = tmp_path_factory.mktemp(f"mixed-{host}")
    with Cluster(host, folder, has_own_controller=True, others={GUEST: guest}) as cluster:
        yield cluster


def test_both_kinds_lead_follow_die_and_return(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, TOPIC)
    with Load(mixed.bootstrap_servers, TOPIC, 3) as load:
        load.await_more(RECORDS)
        for node in (mixed[GUEST], mixed[1]):
            node.kill()
            load.await_more(RECORDS)
            mixed.start_again(node)
            mixed.await_in_sync([TOPIC])
            load.await_more(RECORDS)
    check_load(tools, mixed, load)
    assert {each.leader for each in mixed.partitions(TOPIC)} <= {1, 2, GUEST}
