"""aiokafka in a run: its stamps, its numbers and its brokers, and that it is as before afterwards."""

from __future__ import annotations

import time
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.cluster import ClusterMetadata
from aiokafka.producer.message_accumulator import BatchBuilder

from barnabas import simulation


async def stamp_and_name(cluster: simulation.Cluster) -> tuple[float, str, list[int]]:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        sent = await producer.send_and_wait("orders", b"one")
        brokers: list[int] = [broker.nodeId for broker in producer.client.cluster.brokers()]
        return time.time() - sent.timestamp / 1000, producer.client.cluster.brokers().__class__.__name__, brokers


def test_a_record_has_the_virtual_time_and_aiokafka_is_as_before() -> None:
    before: tuple[Any, ...] = BatchBuilder.append, ClusterMetadata.brokers
    first, again = (simulation.run(stamp_and_name, seed=1, nodes=1) for _ in range(2))
    seconds, kind, brokers = first.value
    assert 0 <= seconds < 5
    assert (kind, brokers) == ("dict_keys", [1])
    assert first.digest == again.digest, "its producers have the same client id"
    assert before == (BatchBuilder.append, ClusterMetadata.brokers)
