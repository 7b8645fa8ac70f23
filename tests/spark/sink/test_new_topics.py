"""The option `createTopics`: its text, and what becomes of topics that exist already."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.topics import NewTopic
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.sink.new_topics import create_missing, parse_new_topics

TIMEOUT_MS = 10_000


def test_a_list_of_topics() -> None:
    assert parse_new_topics(" orders.clean:12 , dead:3:1,") == (NewTopic("orders.clean", 12), NewTopic("dead", 3, 1))
    assert parse_new_topics("") == ()


@pytest.mark.parametrize(
    "part", ["orders", "orders:", "orders:0", "orders:-1", "orders:x", "orders:1:0", "o:1:1:compact"]
)
def test_a_part_that_cannot_be_read(part: str) -> None:
    with pytest.raises(ValueError, match=rf"^createTopics has '{part}': write NAME:PARTITIONS or "):
        parse_new_topics(f"good:1,{part}")


def test_names_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=re.escape("createTopics has 'a/b', which no topic can be called: ")):
        parse_new_topics("a/b:3")
    with pytest.raises(ValueError, match=r"^createTopics names topic a more than once$"):
        parse_new_topics("a:3,b:1,a:3")


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    """A broker that creates no topics by itself."""
    with barnabas.Broker(config={"auto.create.topics.enable": "false"}) as made:
        yield made


def test_missing_topics_are_created_and_others_stay(broker: barnabas.Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.create_topic("there", partitions=2)
    with Cluster(broker.bootstrap_servers) as cluster, Admin(broker.bootstrap_servers) as admin:
        for _ in range(2):
            create_missing(cluster, parse_new_topics("there:12,new:3:1"), TIMEOUT_MS)
        found = {topic.name: len(topic.partitions) for topic in admin.list_topics()}
    assert found == {"there": 2, "new": 3}
    assert caplog.messages == ["topic there has 2 partitions, and createTopics says 12: it stays as it is"] * 2


def test_a_topic_that_brokers_refuse(broker: barnabas.Broker) -> None:
    with Cluster(broker.bootstrap_servers) as cluster, pytest.raises(KafkaError) as caught:
        create_missing(cluster, parse_new_topics("wide:1:3"), 1_000)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
