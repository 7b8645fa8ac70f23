"""The topic of decisions: how many replicas it gets, and what is said when they are few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.cluster import Cluster
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.sink.decision_topic import TOPIC, create_decision_topic, warn_of_few_replicas
from tests.spark.fake_cluster import FakeCluster


@pytest.fixture
def fake() -> FakeCluster:
    """Return three brokers, one of which does not serve."""
    fake = FakeCluster(brokers=2)
    fake.fenced = 1
    fake.supported[ApiKey.DESCRIBE_CLUSTER] = 2
    return fake


@pytest.fixture
def cluster(fake: FakeCluster) -> Iterator[Cluster]:
    with Cluster("h:9092", connect=fake.connect, sleep=lambda seconds: None) as found:
        yield found


def created(fake: FakeCluster) -> list[tuple[int, str]]:
    """Return the replicas of each topic that was created, and its min.insync.replicas."""
    return [
        (each.replication_factor, next(one.value for one in each.configs if one.name == "min.insync.replicas"))
        for each in fake.created
    ]


def test_a_broker_that_is_away_gets_a_replica(
    fake: FakeCluster, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    create_decision_topic(cluster, 1_000)
    assert created(fake) == [(3, "2")]
    assert caplog.messages == []


@pytest.mark.parametrize("version", [-1, 0, 1])
def test_a_peer_that_lists_only_the_brokers_that_serve(
    fake: FakeCluster, cluster: Cluster, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    fake.supported[ApiKey.DESCRIBE_CLUSTER] = version
    create_decision_topic(cluster, 1_000)
    create_decision_topic(cluster, 1_000)
    assert created(fake) == [(2, "1")]
    (said,) = caplog.messages
    assert said.startswith(f"created {TOPIC} with 2 of 3 replicas, because the brokers list no more")


def test_a_topic_that_exists_is_left_alone(fake: FakeCluster, cluster: Cluster) -> None:
    fake.create(TOPIC)
    create_decision_topic(cluster, 1_000)
    assert created(fake) == []
    assert "DescribeCluster" not in fake.requests


def test_brokers_that_come_in_time(fake: FakeCluster, cluster: Cluster) -> None:
    fake.create_error = ErrorCode.INVALID_REPLICATION_FACTOR

    def count(name: str) -> None:
        if fake.requests.count("CreateTopics") == 3:
            fake.create_error = ErrorCode.NONE

    fake.before = count
    create_decision_topic(cluster, 10_000)
    assert created(fake) == [(3, "2")] * 3


def test_brokers_that_stay_away_are_one_sentence(fake: FakeCluster, cluster: Cluster) -> None:
    fake.create_error = ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError, match=f"{TOPIC} cannot be created: .* for 1 ms: too few") as caught:
        create_decision_topic(cluster, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("replicas", "away", "says"), [(1, 1, True), (2, 1, True), (3, 1, False), (2, 0, False)])
def test_a_topic_with_fewer_replicas_than_there_are_brokers(
    fake: FakeCluster, cluster: Cluster, caplog: pytest.LogCaptureFixture, replicas: int, away: int, says: bool
) -> None:
    fake.fenced = away
    fake.create(TOPIC).partitions[0].replicas = replicas
    warn_of_few_replicas(cluster)
    assert [each.split(":")[0] for each in caplog.messages] == [f"{TOPIC} has {replicas} of 3 replicas"] * says
    assert all("kafka-reassign-partitions" in each for each in caplog.messages)


def test_a_warning_never_fails_a_batch(fake: FakeCluster) -> None:
    fake.down = {0, 1}
    with Cluster("h:9092", connect=fake.connect, timeout_ms=1, sleep=lambda seconds: None) as cluster:
        warn_of_few_replicas(cluster)


def test_who_may_not_create_it_gets_the_command_for_an_administrator(fake: FakeCluster, cluster: Cluster) -> None:
    fake.create_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError) as caught:
        create_decision_topic(cluster, 60_000)
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (
        f"`kafka-topics --create --topic {TOPIC} --partitions 1 --replication-factor 3 --config cleanup.policy=compact"
        in (caught.value.message)
    )
    assert "--config min.insync.replicas=2`, and `kafka-acls --add " in caught.value.message
    assert "\n" not in str(caught.value)
    assert fake.requests.count("CreateTopics") == 1
