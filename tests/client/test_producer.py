"""The producer on a broker that is cut off, restarts, or rejects what it gets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.errors import ConnectionLost
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.producer_transactions import end_transactions
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import KafkaError
from barnabas.records.builder import encode_record
from tests.spark.sink.sink_run import committed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def encoded(*values: str) -> EncodedRecords:
    body = b"".join(encode_record(i, 0, None, value.encode()) for i, value in enumerate(values))
    return EncodedRecords(body, len(values), 1_700_000_000_000, 1_700_000_000_000)


def send(producer: Producer, topic: str, count: int) -> dict[str, int]:
    for number in range(count):
        producer.send(TopicPartition(topic, number % 2), encoded(f"{number}a", f"{number}b"))
    producer.flush()
    return {f"{number}{letter}": 1 for number in range(count) for letter in "ab"}


def test_idempotent(broker):
    broker.create_topic("idempotent", partitions=2)
    with Cluster(broker.bootstrap_servers) as cluster:
        producer = Producer(cluster)
        producer.begin()
        expected = send(producer, "idempotent", 50)
    assert committed(broker.bootstrap_servers, "idempotent") == expected


def test_transactions_one_after_the_other(broker):
    broker.create_topic("transactions", partitions=2)
    with Cluster(broker.bootstrap_servers) as cluster:
        producer = Producer(cluster, transactional_id="x")
        epochs = []
        for commit in (False, True):
            epochs.append(producer.begin().epoch)
            expected = send(producer, "transactions", 9)
            end_transactions(cluster, [producer.transaction], commit=commit, timeout_ms=5_000)
        producer.begin()
        send(producer, "transactions", 3)
        producer.abort()
    assert epochs == [0, 1]
    assert committed(broker.bootstrap_servers, "transactions") == expected


@pytest.mark.parametrize("answered", [True, False])
def test_a_connection_that_ends_again_and_again(broker, answered):
    topic = f"lost-{answered}"
    broker.create_topic(topic, partitions=2)
    sent = 0

    class Fragile(BlockingConnection):
        def send(self, message, version=None, *, highest=None):
            nonlocal sent
            if type(message).__name__ == "ProduceRequest":
                sent += 1
                if sent % 3:
                    if answered:
                        super().send(message, version, highest=highest)
                        super().receive()
                    self.close()
                    raise ConnectionLost("the test ends it")
            return super().send(message, version, highest=highest)

    with Cluster(broker.bootstrap_servers, connect=Fragile, sleep=lambda seconds: None) as cluster:
        producer = Producer(cluster)
        producer.begin()
        expected = send(producer, topic, 12)
    assert sent > 12
    assert committed(broker.bootstrap_servers, topic) == expected


def test_a_broker_that_restarts(tmp_path):
    with barnabas.Broker(tmp_path) as broker:
        broker.create_topic("t", partitions=2)
        with Cluster(broker.bootstrap_servers) as cluster:
            producer = Producer(cluster)
            producer.begin()
            producer.send(TopicPartition("t", 0), encoded("before"))
            producer.flush()
            broker.stop()
            broker.start()
            producer.send(TopicPartition("t", 0), encoded("after"))
            producer.flush()
        assert committed(broker.bootstrap_servers, "t") == {"before": 1, "after": 1}


def test_a_broker_that_stays_away():
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    with barnabas.Broker() as broker:
        broker.create_topic("t")
        cluster = Cluster(broker.bootstrap_servers, clock=lambda: now, sleep=sleep)
        producer = Producer(cluster, delivery_timeout_ms=10_000)
        producer.begin()
    producer.send(TopicPartition("t", 0), encoded("x"))
    with pytest.raises(KafkaError, match=r"lost the connection|cannot reach"):
        producer.flush()
    assert 8 < now <= 10


def test_a_record_that_is_too_large(broker):
    broker.create_topic("small", config={"max.message.bytes": 1000})
    with Cluster(broker.bootstrap_servers) as cluster:
        producer = Producer(cluster)
        producer.begin()
        producer.send(TopicPartition("small", 0), encoded("x" * 2000))
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.flush()


def test_more_than_it_keeps_in_memory(broker):
    broker.create_topic("large", partitions=2)
    with Cluster(broker.bootstrap_servers) as cluster:
        producer = Producer(cluster)
        producer.begin()
        for number in range(30):
            producer.send(TopicPartition("large", number % 2), encoded(f"{number:03}" * 200_000))
            assert producer._queued_bytes <= 8 << 20
        producer.flush()
    assert sum(committed(broker.bootstrap_servers, "large").values()) == 30
