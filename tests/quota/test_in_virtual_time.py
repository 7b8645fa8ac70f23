"""A client over its quota, to the millisecond: how long the silence lasts, that it loses nothing, that others do not wait."""

from __future__ import annotations

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.records.builder import build_batch
from barnabas.simulation.node_loop import NodeLoop
from tests.simulation.client import Client
from tests.simulation.test_virtual_time import ADDRESS, create, in_virtual_time

pytestmark = pytest.mark.slow

LIMIT = 1000.0
ROUND_TRIP_S = 0.2
"""More than the simulated network ever takes there and back."""


async def limit(client_id: str) -> None:
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=LIMIT)],
    )
    request = AlterClientQuotasRequest(entries=[entry])
    answer = await Client(ADDRESS, "admin").request(ApiKey.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
    assert answer.entries[0].error_code == 0


async def produce(client: Client, loop: NodeLoop, size: int) -> int:
    records = bytes(build_batch([(loop.now_ms(), None, bytes(size), [])]))
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[partition])]
    answer = await client.request(
        ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), ProduceResponse
    )
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)


async def ask(client: Client) -> None:
    await client.request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), MetadataResponse)


def test_the_silence_lasts_as_long_as_it_was_said_to() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        await limit("greedy")
        greedy, modest = Client(ADDRESS, "greedy", timeout=60.0), Client(ADDRESS, "modest")
        began = loop.time()
        throttle_ms = await produce(greedy, loop, 30_000)
        answered = loop.time()
        # A little more than 30 kB over ten whole windows is 3 kB/s: two thirds too much.
        assert 20_000 <= throttle_ms <= 20_500
        assert answered - began < ROUND_TRIP_S
        await ask(modest)
        assert loop.time() - answered < ROUND_TRIP_S
        await ask(greedy)
        silence = loop.time() - answered
        assert throttle_ms / 1000 - ROUND_TRIP_S < silence < throttle_ms / 1000 + ROUND_TRIP_S
        # The burst has left the window: a client that rested may go on.
        assert await produce(greedy, loop, 100) == 0

    in_virtual_time(story)


def test_a_client_that_does_not_rest_is_held_to_its_rate() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        await limit("greedy")
        greedy = Client(ADDRESS, "greedy", timeout=600.0)
        began, sent = loop.time(), 0
        while sent < 100_000:
            await produce(greedy, loop, 2_000)
            sent += 2_000
        # What one window's worth of credit allows beyond the rate, and what the envelope of each request adds.
        assert 0.85 * sent / LIMIT <= loop.time() - began <= 1.15 * sent / LIMIT

    in_virtual_time(story)
