"""Ordered growth as a client reads and writes it, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.client.admin import Admin, NewTopic, TopicPartition, results
from barnabas.client.topic_growth import fences_of, list_growth, log_starts, store_growth
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.ordered_growth import SETTING, Generation


@pytest.fixture
def broker() -> Iterator[Any]:
    with barnabas.Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 3, 1)])
        yield running


def test_a_growth_is_stored_and_listed(broker: Any) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        assert list_growth(admin.cluster, ["t", "missing"]) == {}
        assert list_growth(admin.cluster, []) == {}
        assert store_growth(admin.cluster, "t", [Generation(3, 6, 7)])
        assert list_growth(admin.cluster, ["t"]) == {"t": (Generation(3, 6, 7),)}
        assert store_growth(admin.cluster, "t", [])
        assert list_growth(admin.cluster, ["t"]) == {}


def test_the_broker_rejects_a_growth_that_cannot_be(broker: Any) -> None:
    with Admin(broker.bootstrap_servers) as admin, pytest.raises(KafkaError) as raised:
        store_growth(admin.cluster, "t", [Generation(4, 6)])
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    assert f"configuration {SETTING}: 6 is not a multiple of 4" in str(raised.value)


def test_fences_are_behind_the_last_record_whatever_follows(broker: Any) -> None:
    """Partition 0 ends in a record, 1 first in a record and then in a marker; 2 is empty."""
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    plain.produce("t", b"x", partition=0)
    plain.produce("t", b"x", partition=0)
    plain.produce("t", b"x", partition=1)
    plain.flush()
    with Admin(broker.bootstrap_servers) as admin:
        assert fences_of(admin.cluster, "t", 3) == (2, 1, 0)
    sender = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "s", "linger.ms": 0})
    sender.init_transactions()
    sender.begin_transaction()
    sender.produce("t", b"x", partition=1)
    sender.commit_transaction()
    with Admin(broker.bootstrap_servers) as admin:
        where = TopicPartition("t", 1)
        assert results(admin.list_offsets({where: -1}))[where].offset == 3, "a record, a record, a marker"
        assert fences_of(admin.cluster, "t", 3) == (2, 2, 0)


def test_a_partition_whose_records_are_deleted_has_no_fence(broker: Any) -> None:
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    plain.produce("t", b"x", partition=0)
    plain.flush()
    with Admin(broker.bootstrap_servers) as admin:
        results(admin.delete_records({TopicPartition("t", 0): -1}))
        assert fences_of(admin.cluster, "t", 1) == (0,)
        assert log_starts(admin.cluster, "t", 2) == [1, 0]
