"""librdkafka, an independent client, meets quotas: it is told to rest, loses nothing, and is held to the rate."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import barnabas
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import AlterClientQuotasRequest


def limit(broker: barnabas.Broker, **limits: float) -> None:
    node = broker._node
    assert node is not None
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="limited")],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value) for key, value in limits.items()],
    )

    async def alter() -> None:
        await node.broker.controller.handle(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries=[entry]))

    broker._call(alter)


@pytest.mark.slow
def test_a_producer_and_a_consumer_over_their_quotas() -> None:
    """Each goes on until it is told to rest: a machine may be too busy for either to be over its quota from the beginning."""
    throttled: list[float] = []
    with barnabas.Broker(config={"quota.window.num": 2}) as broker:
        broker.create_topic("t")
        limit(broker, producer_byte_rate=400_000.0, consumer_byte_rate=400_000.0)
        settings: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "limited",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
        producer = Producer({**settings, "batch.size": 50_000, "linger.ms": 1})
        began = time.monotonic()
        written = 0
        while not throttled:
            for number in range(written, written + 100):
                producer.produce("t", number.to_bytes(4, "big") + bytes(9_996))
            written += 100
            assert producer.flush(600) == 0
        # A megabyte at 400 kB/s, of which one window's worth and one batch may come at once.
        assert time.monotonic() - began >= 1.0
        assert max(throttled) > 0
        throttled.clear()
        consumer = Consumer(
            {
                **settings,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "fetch.message.max.bytes": 100_000,
                "fetch.max.bytes": 100_000,
                "message.max.bytes": 50_000,
            }
        )
        consumer.subscribe(["t"])
        while not throttled:
            read: list[int] = []
            while len(read) < written:
                read += [int.from_bytes(message.value()[:4], "big") for message in consumer.consume(100, 1.0)]
            assert read == list(range(written))
            consumer.seek(TopicPartition("t", 0, 0))
        consumer.close()
