"""A barnabas broker among Apache Kafka's controllers and brokers, and an Apache Kafka broker in a barnabas cluster.

Leaders and followers of both kinds replicate from each other; each is killed and returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for
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


def test_a_cordoned_broker_gets_no_replica_that_a_controller_places(mixed: Cluster) -> None:
    """KIP-1066, which Apache Kafka's broker has and barnabas' controller honours."""
    cordoned = next(node for node in mixed.brokers if node.kind == "apache-kafka")
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap_servers, "log_level": 0})
    names = (f"placed-{number}" for number in itertools.count())

    def cordon(directories: str) -> None:
        entry = ConfigEntry("cordoned.log.dirs", directories, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, str(cordoned.node_id), incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)

    def placed() -> set[int]:
        name = next(names)
        admin.create_topics([NewTopic(name, 6, 2)])[name].result(30)
        mixed.await_in_sync([name])
        return {replica for each in mixed.partitions(name) for replica in each.replicas}

    others = {node.node_id for node in mixed.brokers} - {cordoned.node_id}
    assert placed() == others | {cordoned.node_id}
    cordon(str(cordoned.data_dir))
    wait_for("a heartbeat says that the broker is cordoned", lambda: placed() == others)
    name = next(names)
    with pytest.raises(KafkaException, match=r"INVALID_REPLICATION_FACTOR|cordoned"):
        admin.create_topics([NewTopic(name, 1, 3)])[name].result(30)
    cordon("")
    wait_for("a heartbeat says that it is not any more", lambda: cordoned.node_id in placed())


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
