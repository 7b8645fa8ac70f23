"""Reads a real broker, which is barnabas; what it does not answer is named."""

from __future__ import annotations

import pytest

import barnabas
from barnabas.adopt.cluster_reader import read_cluster
from barnabas.client.admin import Admin, NewTopic, TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError


def test_a_broker(broker: barnabas.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not allowed")

    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, configs={"retention.ms": "1000"})])
        monkeypatch.setattr(admin, "list_quotas", denied)
        found = read_cluster(admin, 0)
    assert found.brokers == (1,)
    assert found.barnabas == {1}
    assert set(found.partitions) >= {TopicPartition("orders", 0), TopicPartition("orders", 1)}
    assert {each.name: each.value for each in found.topic_settings["orders"]}["retention.ms"] == "1000"
    assert set(found.features[1].supported) >= {"metadata.version", "kraft.version"}
    assert len(found.log_dirs[1]) == 1
    assert found.acls is None
    assert [each.what for each in found.unseen] == ["quotas"]
    assert found.problems == []
