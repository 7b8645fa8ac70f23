"""`reset` under clients that a test left behind."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

import barnabas

PATIENCE_SECONDS = 60


def transactional(broker: barnabas.Broker) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "till", "log_level": 0})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    return producer


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_open_consumer_is_named(protocol: str, barnabas: barnabas.Broker, caplog: pytest.LogCaptureFixture) -> None:
    barnabas.create_topic("orders")
    consumer = Consumer(
        {
            "bootstrap.servers": barnabas.bootstrap_servers,
            "group.id": "shop\nERROR forged",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers})
    producer.produce("orders", b"one")
    producer.flush(PATIENCE_SECONDS)
    consumer.subscribe(["orders"])
    assert consumer.poll(PATIENCE_SECONDS) is not None
    barnabas.reset()
    assert "Reset while group shop\\nERROR forged has members, 1 in all: close consumers at the end" in caplog.text
    consumer.close()


@pytest.mark.slow
def test_an_open_transaction_ends_with_an_error_and_blocks_nobody(barnabas: barnabas.Broker) -> None:
    left_open = transactional(barnabas)
    left_open.produce("orders", b"lost")
    left_open.flush(PATIENCE_SECONDS)
    barnabas.reset()
    with pytest.raises(KafkaException, match="INVALID_PRODUCER_ID_MAPPING"):
        left_open.commit_transaction(PATIENCE_SECONDS)

    producer = transactional(barnabas)
    producer.produce("orders", b"kept")
    producer.commit_transaction(PATIENCE_SECONDS)
    consumer = Consumer(
        {"bootstrap.servers": barnabas.bootstrap_servers, "group.id": "shop", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(PATIENCE_SECONDS)
    assert message is not None
    assert message.value() == b"kept"
    consumer.close()
