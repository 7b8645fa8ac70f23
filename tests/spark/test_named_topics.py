"""Topics that do not exist: the sentences, and the creation that brokers allow or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerNotAvailable
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.named_topics import nearest_topic, partition_count
from barnabas.spark.plain_errors import QueryError
from tests.spark.fake_cluster import FakeCluster

TIMEOUT_MS = 10_000


@pytest.fixture(scope="module")
def creating() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"num.partitions": 3}) as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


@pytest.fixture(scope="module")
def strict() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


def count_of(broker: barnabas.Broker, topic: str) -> int:
    with Cluster(broker.bootstrap_servers) as cluster:
        return partition_count(cluster, topic, TIMEOUT_MS)


def topics(broker: barnabas.Broker) -> set[str]:
    with Admin(broker.bootstrap_servers) as admin:
        return {each.name for each in admin.list_topics()}


def test_a_topic_that_exists(creating: barnabas.Broker, strict: barnabas.Broker) -> None:
    assert count_of(creating, "orders") == count_of(strict, "orders") == 2


def test_a_missing_topic_is_created_with_the_brokers_defaults(
    creating: barnabas.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    assert count_of(creating, "ordres") == 3
    assert "ordres" in topics(creating)
    assert caplog.messages == [
        "topic ordres did not exist, and was created with the brokers' defaults; did you mean orders?"
    ]


def test_a_missing_topic_that_brokers_do_not_create(strict: barnabas.Broker) -> None:
    servers = strict.bootstrap_servers
    for topic, meant in (("ordres", "; did you mean orders?"), ("nothing-like-it", "")):
        with pytest.raises(QueryError) as caught:
            count_of(strict, topic)
        assert str(caught.value) == (
            f"topic {topic} does not exist, and brokers do not create it (auto.create.topics.enable=false): "
            f"`barnabas topic create {topic} -b {servers}` does{meant}"
        )
    assert topics(strict) == {"orders"}


def test_a_name_that_no_topic_can_have(creating: barnabas.Broker, strict: barnabas.Broker) -> None:
    for broker in (creating, strict):
        with pytest.raises(QueryError, match=r"^'not\\na topic' is not a valid topic name$"):
            count_of(broker, "not\na topic")


def test_the_sentence_does_without_the_other_names() -> None:
    fake = FakeCluster()
    fake.create("orders")
    with Cluster("h:9092", connect=fake.connect) as cluster:
        assert nearest_topic(cluster, "ordres") == "; did you mean orders?"
    fake.down = {0}
    with Cluster("h:9092", connect=fake.connect, timeout_ms=1, sleep=lambda seconds: None) as cluster:
        with pytest.raises(BrokerNotAvailable):
            cluster.metadata()
        assert nearest_topic(cluster, "ordres") == ""


def test_a_topic_that_this_user_may_not_create_is_one_sentence() -> None:
    fake = FakeCluster()
    fake.create_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with (
        Cluster("h:9092", connect=fake.connect, sleep=lambda seconds: None) as cluster,
        pytest.raises(KafkaError, match="topic t does not exist, and this user may not create it: an administrator"),
    ):
        partition_count(cluster, "t", 1_000)
