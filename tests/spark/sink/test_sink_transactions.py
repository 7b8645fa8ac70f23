"""Open transactions under a sink's name, on brokers that filter by a pattern and on older ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.records.builder import encode_record
from barnabas.spark.sink.sink_transactions import SinkTransactions, was_committed

pytestmark = pytest.mark.slow
ROW = EncodedRecords(encode_record(0, 0, None, b"row"), 1, 0, 0)
# A prefix may have what a pattern takes for its own.
NAME = "shop (eu).*+é/q"


class _Older(BlockingConnection):
    """Connects to brokers as they were before patterns."""

    def version_for(self, request, highest=None):
        is_list = isinstance(request, messages.ListTransactionsRequest)
        return super().version_for(request, 1 if is_list else highest)


class _Counting(BlockingConnection):
    """Counts the ids that brokers list."""

    listed = 0

    def receive(self, *, timeout_ms=None):
        response = super().receive(timeout_ms=timeout_ms)
        if isinstance(response, messages.ListTransactionsResponse):
            _Counting.listed += len(response.transaction_states)
        return response


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        running.create_topic("rows")
        yield running


@pytest.fixture
def cluster(broker: barnabas.Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as found:
        yield found


def begun(cluster: Cluster, transactional_id: str) -> Transaction:
    producer = Producer(cluster, transactional_id=transactional_id)
    producer.begin()
    producer.send(TopicPartition("rows", 0), ROW)
    producer.flush()
    return producer.transaction


@pytest.mark.parametrize("connect", [_Counting, _Older], ids=["pattern", "older"])
def test_only_those_of_the_name(broker, cluster, connect, monkeypatch):
    ours = [begun(cluster, f"{NAME}/w/{number}") for number in range(3)]
    begun(cluster, "shop (eu).*+é/q-b/w/0")
    begun(cluster, "shop (eu)xx+é/q/w/0")
    monkeypatch.setattr(_Counting, "listed", 0)
    with Cluster(broker.bootstrap_servers, connect=connect) as other:
        found = SinkTransactions(other, NAME, 10_000)
        assert found.look([], []) == (set(ours), [])
        assert found.look(ours[:1], []) == (set(ours[1:]), [])
        assert _Counting.listed == (6 if connect is _Counting else 0)
        found.fence(ours)
        assert found.look([], ours) == (set(), [])
        assert sorted(found.look(ours, [])[1]) == ours


def test_a_transaction_of_the_same_id_is_not_fenced(cluster):
    producer = Producer(cluster, transactional_id="again/q/w/0")
    first = begun(cluster, "again/q/w/0")
    assert end_transactions(cluster, [first], commit=True, timeout_ms=10_000) == {first: None}
    assert was_committed(cluster, first, 10_000)
    producer.begin()
    producer.send(TopicPartition("rows", 0), ROW)
    producer.flush()
    assert not was_committed(cluster, first, 10_000)
    found = SinkTransactions(cluster, "again/q", 10_000)
    found.fence([first])
    assert found.look([], []) == ({producer.transaction}, [])
    producer.abort()
    assert not was_committed(cluster, producer.transaction, 10_000)


def test_an_id_that_nobody_used_was_not_committed(cluster):
    assert not was_committed(cluster, Transaction("nobody/q/w/0", 1, 0), 10_000)
