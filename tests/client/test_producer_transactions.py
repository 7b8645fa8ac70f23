"""The requests about transactions, on a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.producer_transactions import (
    Transaction,
    add_partitions_to_transaction,
    end_transactions,
    init_producer_id,
)
from barnabas.client.transactions import describe_transactions
from barnabas.protocol.errors import ErrorCode, KafkaError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"transaction.two.phase.commit.enable": True}) as running:
        running.create_topic("t", partitions=2)
        yield running


@pytest.fixture
def cluster(broker: barnabas.Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as found:
        yield found


def begun(cluster: Cluster, name: str, **options: bool) -> Transaction:
    identity = init_producer_id(cluster, name, 60_000, timeout_ms=5_000, **options)
    transaction = Transaction(name, identity.producer_id, identity.epoch)
    add_partitions_to_transaction(cluster, transaction, [TopicPartition("t", 0)], timeout_ms=5_000)
    return transaction


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_can_be_repeated_but_not_changed(cluster, commit):
    transaction = begun(cluster, f"repeat-{commit}")
    for _ in range(2):
        assert end_transactions(cluster, [transaction], commit=commit, timeout_ms=5_000) == {transaction: None}
    error = end_transactions(cluster, [transaction], commit=not commit, timeout_ms=5_000)[transaction]
    assert error is not None
    assert error.code == ErrorCode.INVALID_TXN_STATE


def test_one_failure_does_not_hide_the_others(cluster):
    fenced, good = begun(cluster, "fenced"), begun(cluster, "good")
    init_producer_id(cluster, "fenced", 60_000, timeout_ms=5_000)
    outcomes = end_transactions(cluster, [fenced, good], commit=True, timeout_ms=5_000)
    assert outcomes[good] is None
    error = outcomes[fenced]
    assert error is not None
    assert error.code == ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_replaced_gets_no_epoch(cluster):
    first = init_producer_id(cluster, "replaced", 60_000, timeout_ms=5_000)
    again = init_producer_id(cluster, "replaced", 60_000, expected=first, timeout_ms=5_000)
    assert again.epoch == first.epoch + 1
    init_producer_id(cluster, "replaced", 60_000, timeout_ms=5_000)
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        init_producer_id(cluster, "replaced", 60_000, expected=again, timeout_ms=5_000)


def test_two_phase_transactions_have_no_timeout(cluster):
    begun(cluster, "two", two_phase=True)
    begun(cluster, "one", two_phase=False)
    found = describe_transactions(cluster, ["two", "one"])
    assert {name: each.timeout_ms for name, each in found.items()} == {"two": 0x7FFFFFFF, "one": 60_000}  # type: ignore[union-attr]


@pytest.mark.parametrize("config", [{}, {"unstable.api.versions.enable": True}])
def test_a_broker_without_two_phase_commit(config):
    with barnabas.Broker(config=config) as plain, Cluster(plain.bootstrap_servers) as cluster:
        assert not init_producer_id(cluster, "x", 60_000, two_phase=True, timeout_ms=5_000).two_phase


def test_an_idempotent_producer(cluster):
    one, two = (init_producer_id(cluster, None, 60_000, timeout_ms=5_000) for _ in range(2))
    assert one.producer_id != two.producer_id


def test_a_partition_that_does_not_exist(cluster):
    identity = init_producer_id(cluster, "nowhere", 60_000, timeout_ms=5_000)
    transaction = Transaction("nowhere", identity.producer_id, identity.epoch)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        add_partitions_to_transaction(
            cluster, transaction, [TopicPartition("t", 0), TopicPartition("t", 9)], timeout_ms=5_000
        )
