"""A cluster whose first broker is used before the others start: its internal topics are not born with too few replicas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.cluster import views
from tests.cluster.cluster import CONTROLLER_ID, Cluster
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

INTERNAL = ("__consumer_offsets", "__transaction_state")
POLL_SECONDS = 0.2


@pytest.fixture(params=["barnabas", pytest.param("apache-kafka", marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A controller and broker 1; brokers 2 and 3 have not started yet."""
    made = Cluster(request.param, tmp_path, has_own_controller=True)
    try:
        for node_id in (CONTROLLER_ID, 1):
            made.start_again(made[node_id])
        yield made
    finally:
        made.close()


def test_the_first_broker_makes_no_internal_topic_before_the_third_is_there(cluster: Cluster) -> None:
    create_topic(cluster, "early", [[1]])
    producer = Producer({"bootstrap.servers": cluster[1].bootstrap_servers, "acks": "all"})
    producer.produce("early", b"first")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["early"])
    transactional = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t", "log_level": 0})
    with pytest.raises(Exception, match=r"(?i)coordinator|timed out|init"):
        transactional.init_transactions(1.0)
    for _ in range(5):
        assert consumer.poll(POLL_SECONDS) is None, "a group without a coordinator reads nothing"
    assert not views.all_topics(cluster[1].address) & set(INTERNAL)

    cluster.start_again(cluster[2])
    assert consumer.poll(POLL_SECONDS) is None
    assert not views.all_topics(cluster[1].address) & set(INTERNAL), "two brokers are too few for three replicas"

    cluster.start_again(cluster[3])
    message = wait_for("the group reads", lambda: consumer.poll(POLL_SECONDS))
    assert message.value() == b"first"
    transactional.init_transactions(60.0)
    found = views.metadata(cluster[1].address, *INTERNAL).topics
    counts = {name: {len(each.replicas) for each in topic.partitions} for name, topic in found.items()}
    assert counts == {name: {3} for name in INTERNAL}
    consumer.close()
