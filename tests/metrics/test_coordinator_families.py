"""Transactions, share groups and the log cleaner."""

from __future__ import annotations

from barnabas.protocol.messages import AddPartitionsToTxnRequest, InitProducerIdRequest, ProduceRequest
from tests.metrics.monitored import Monitored, begin_transaction, coordinate, value
from tests.replication.hosting import batch


def test_an_open_transaction_holds_back_the_stable_offset_and_is_seen(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    coordinate(node, key_type=1)
    began = node.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    assert began.error_code == 0
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    assert node.ask(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    node.produce("t", b"plain", timestamp=node.now_ms)
    records = batch(
        b"open",
        timestamp=node.now_ms,
        producer_id=began.producer_id,
        producer_epoch=began.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[data])]
    answer = node.ask(ProduceRequest(transactional_id="tx", acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    node.commit("g", "t", 0)
    node.now_ms += 7000
    samples = node.samples()
    assert value(samples, "kafka_cluster_partition_laststableoffsetlag", topic="t", partition="0") == 1
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="0") == 2
    # Up to the last stable offset there is one record; the other is not there yet.
    assert value(samples, "kafka_consumergroup_lag", consumergroup="g", topic="t", partition="0") == 1
    assert value(samples, "barnabas_transaction_state_count", state="Ongoing") == 1
    assert value(samples, "barnabas_transaction_oldest_ongoing_seconds") == 7
    assert value(samples, "kafka_server_replicamanager_produceridcount") == 1
    late = "kafka_server_replicamanager_partitionswithlatetransactionscount"
    # transaction.max.timeout.ms and five minutes have to pass.
    node.now_ms += 900_000 + 300_000 - 7_000
    assert value(node.samples(), late) == 0
    node.now_ms += 1
    assert value(node.samples(), late) == 1


def owners(node: Monitored) -> dict[str, float]:
    """Return how long transactions have been open, by their owner."""
    found = node.samples().items()
    return {dict(key[1])["owner"]: each for key, each in found if key[0] == "barnabas_transaction_ongoing_seconds"}


def test_the_owners_of_the_oldest_transactions_are_named(node: Monitored) -> None:
    """A Spark query, whose tasks have one id each, is one of them; and they are never many."""
    node.create_topic("t")
    coordinate(node, key_type=1)
    begin_transaction(node, "shop/orders/0123456789ab/0")
    node.now_ms += 5_000
    begin_transaction(node, "shop/orders/0123456789ab/1")
    begin_transaction(node, "billing-7")
    node.now_ms += 5_000
    assert owners(node) == {"shop/orders": 10}
    node.now_ms += 5_000
    assert owners(node) == {"shop/orders": 15, "billing-7": 10}
    for number in range(12):
        begin_transaction(node, f"many-{number}")
    node.now_ms += 20_000
    assert len(owners(node)) == 10
    assert {"shop/orders", "billing-7"} <= set(owners(node))
