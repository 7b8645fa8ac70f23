"""A topic is read piece by piece, and never waited for."""

from __future__ import annotations

import pytest

import barnabas
from barnabas.spark.queries import topic_tail
from barnabas.spark.queries.topic_tail import TopicTail
from tests.spark.session import Topics


def until(tail: TopicTail, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += tail.new()
    return found


def test_values_in_every_partition_once():
    with barnabas.Broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        with pytest.raises(RuntimeError, match="topic losses does not exist: create it first"):
            TopicTail(broker.bootstrap_servers, "losses")
        topics.create(name="losses", partitions=2)
        tail = TopicTail(broker.bootstrap_servers, "losses")
        assert tail.new() == []
        topics.values("losses", ["a"], partition=0)
        topics.values("losses", ["b"], partition=1)
        assert sorted(until(tail, 2)) == [b"a", b"b"]
        topics.values("losses", ["c"], partition=1)
        assert until(tail, 1) == [b"c"]
        tail.close()


def test_no_broker(monkeypatch):
    monkeypatch.setattr(topic_tail, "_LISTING_S", 0.1)
    with pytest.raises(RuntimeError, match=r"cannot reach 127\.0\.0\.1:1 to read topic losses"):
        TopicTail("127.0.0.1:1", "losses")
