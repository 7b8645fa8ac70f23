"""librdkafka, an independent client, meets quotas: it is told to rest, loses nothing, and is held to the rate."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

import barnabas
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import AlterClientQuotasRequest


def limit(broker: barnabas.Broker, **limits: float) -> None:
    server = broker._server
    assert server is not None
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="limited")],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value) for key, value in limits.items()],
    )

    async def alter() -> None:
        await server.controller.handle(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries=[entry]))

    broker._call(alter)


@pytest.mark.slow
def test_a_producer_and_a_consumer_over_their_quotas() -> None:
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
        for number in range(100):
            producer.produce("t", number.to_bytes(4, "big") + bytes(9_996))
        assert producer.flush(60) == 0
        # A megabyte at 400 kB/s, of which one window's worth and one batch may come at once.
        assert time.monotonic() - began >= 1.0
        assert throttled
        assert max(throttled) > 0
        producer_throttles = len(throttled)
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
        read: list[int] = []
        while len(read) < 100:
            read += [int.from_bytes(message.value()[:4], "big") for message in consumer.consume(100, 1.0)]
        assert read == list(range(100))
        assert len(throttled) > producer_throttles
        consumer.close()
