"""The policy's topics are created once, and keep their records for long enough."""

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.client.admin import Admin
from barnabas.client.configs import ConfigResource, ResourceType
from barnabas.client.outcome import result
from barnabas.embedded.broker import Broker
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.topics import MissingTopic, ensure_topics


def test_topics_are_created_if_they_do_not_exist(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=3)
    barnabas.create_topic("orders.dlq", partitions=1)
    policy = RetryPolicy("orders.dlq", delays=("10s", "3d"))
    client = AdminClient({"bootstrap.servers": barnabas.bootstrap_servers})
    counts = {"orders": 3, "orders.retry.1": 3, "orders.retry.2": 3, "orders.dlq": 1}
    assert ensure_topics(client, ["orders"], policy) == counts
    assert ensure_topics(client, ["orders"], policy) == counts
    with Admin(barnabas.bootstrap_servers) as admin:
        kept = []
        for topic in policy.retry_topics:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            entries = result(admin.describe_configs([resource], names=["retention.ms"])[resource])
            kept.append(entries[0].value)
    assert kept == ["604800000", "2592000000"]
    with pytest.raises(MissingTopic, match="topic ordrs does not exist: create it first"):
        ensure_topics(client, ["ordrs"], policy)
