"""A producer with a quota (KIP-219).

The broker answers how long to wait. The producer mostly waits so long; when it sends earlier, the broker answers it later.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ProduceRequest, ProduceResponse
from barnabas.records.builder import build_batch
from tests.simulation.client import Asks
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import Partition
from tests.simulation.workload import LOST, NOT_YET, Producer

NAME = "limited"
RATE = "producer_byte_rate"
LEAST_RATE, MOST_RATE = 300, 450
"""In bytes a second. What the producer may owe when its rate falls from the one to the other takes a few seconds."""
SAMPLES_SECONDS = 11
"""Over so long a broker measures a rate, if it has known the client for as long."""
PATIENT_RATE = 0.7
TRIES = 20


class LimitedProducer(Producer):
    """A producer that notes which answers ask it to wait, and whether the broker answers it before the time is over."""

    _muted: tuple[Address | None, float] | None = None
    """The broker that asked it to wait, and until when."""

    async def step(self, client: Asks, loop: Any) -> None:
        assert isinstance(client, ClusterClient)
        muted, self._muted, self.throttle_ms = self._muted, None, 0
        had_identity, began = self.identity is not None, loop.time()
        await super().step(client, loop)
        # A connection that broke has raised an error, so that `_muted` is forgotten: what the broker mutes is a connection.
        if had_identity and muted is not None and client.last_asked == muted[0] and loop.time() < muted[1]:
            early_ms = (muted[1] - loop.time()) * 1000
            self.history.tuning.let_through.append(f"{self.name} was served {early_ms:.1f} ms before its wait was over")
        if self.throttle_ms:
            self.history.tuning.throttles += 1
            # From the broker's answer on, whenever that reaches this client.
            self._muted = client.last_asked, began + self.throttle_ms / 1000
            if self.rng.random() < PATIENT_RATE:
                await asyncio.sleep(self.throttle_ms / 1000)


async def overdraw(client: ClusterClient, partition: Partition, quota: int) -> list[str]:
    """Send more than a quota allows as its client, and say if the leader of a partition never tells it to wait.

    Brokers may not know the quota yet, so it is exceeded again and again.
    """
    value = b"." * (quota * (SAMPLES_SECONDS + 1))
    loop: Any = asyncio.get_running_loop()
    for _ in range(TRIES):
        data = ProduceRequest.PartitionProduceData(
            index=partition.index, records=bytes(build_batch([(loop.now_ms(), None, value, [])]))
        )
        topic = ProduceRequest.TopicProduceData(name=partition.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
        try:
            answer = await client.request(ApiKey.PRODUCE, 9, request, ProduceResponse)
        except LOST:
            continue
        error = answer.responses[0].partition_responses[0].error_code
        assert not error or error in NOT_YET, f"{NAME} was answered {ErrorCode(error).name} at the end"
        if answer.throttle_time_ms:
            return []
        await asyncio.sleep(0.1)
    where = f"{partition.topic}-{partition.index}"
    return [f"the leader of {where} took {len(value)} bytes {TRIES} times at a quota of {quota}"]
