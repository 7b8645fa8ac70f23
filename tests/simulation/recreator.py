"""A client that creates a topic, writes to it, deletes it, and creates it again: nothing of the former topic of that name may come back.

It names the topic by its id wherever a delayed request could meet the wrong topic. A creation has no id: a delayed one may create the topic
before the client asks again, and then the client works on that topic.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.records.builder import build_batch
from tests.simulation.client import Asks, Connect
from tests.simulation.creator import NOT_NOW, create_topic
from tests.simulation.history import History, Partition
from tests.simulation.workload import LOST, NOT_YET

NAME = "again"
PARTITION = Partition(NAME, 0)
GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
WRITES = 5


class Recreator:
    """Works on one topic until stopped.

    Args:
        replicas: of the topic.
    """

    name = "the recreator of a topic"

    def __init__(self, history: History, rng: random.Random, replicas: int) -> None:
        self._history, self._rng, self._replicas = history, rng, replicas
        self._id: bytes | None = None
        self._written = 0

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("recreator")
        while True:
            with contextlib.suppress(*LOST):
                await self._step(client, loop)
            await asyncio.sleep(self._rng.random() * 0.5)

    async def _step(self, client: Asks, loop: Any) -> None:
        if self._id is None:
            await self._create(client)
        elif self._written < WRITES:
            await self._write(client, loop)
        else:
            await self._delete(client)

    async def _create(self, client: Asks) -> None:
        error = await create_topic(client, NAME, 1, self._replicas)
        if error not in NOT_YET | NOT_NOW | {ErrorCode.NONE}:
            raise AssertionError(f"the creation of {NAME} was answered {ErrorCode(error).name}")
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=NAME)])
        answer = await client.request(ApiKey.METADATA, 12, request, MetadataResponse)
        topic = answer.topics[0]
        # A broker that lags still knows the former topic.
        if not topic.error_code and topic.topic_id not in self._history.deleted_ids:
            self._id, self._written = bytes(topic.topic_id), 0
            self._history.recreated = {}

    async def _write(self, client: Asks, loop: Any) -> None:
        assert self._id is not None
        value = f"{self._id.hex()}:{self._written}".encode()
        records = bytes(build_batch([(loop.now_ms(), None, value, [])]))
        topic = ProduceRequest.TopicProduceData(name=NAME, topic_id=self._id)
        topic.partition_data = [ProduceRequest.PartitionProduceData(index=0, records=records)]
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
        answer = await client.request(ApiKey.PRODUCE, 13, request, ProduceResponse)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            self._history.recreated[int(result.base_offset)] = value
            self._written += 1
        elif result.error_code not in NOT_YET | {ErrorCode.UNKNOWN_TOPIC_ID}:
            raise AssertionError(f"a write to {NAME} was answered {ErrorCode(result.error_code).name}")

    async def _delete(self, client: Asks) -> None:
        assert self._id is not None
        # From here on the topic may go at any moment: what it has is no longer promised.
        self._history.recreated = {}
        topic = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=self._id)
        request = DeleteTopicsRequest(topics=[topic], timeout_ms=5000)
        answer = await client.request(ApiKey.DELETE_TOPICS, 6, request, DeleteTopicsResponse)
        error = answer.responses[0].error_code
        if error in (ErrorCode.NONE, *GONE):
            asyncio.get_running_loop().note(f"{NAME} is deleted", is_detail=True)  # type: ignore[attr-defined]
            self._history.deleted_ids[self._id] = None
            self._id = None
        elif error not in NOT_YET:
            raise AssertionError(f"the deletion of {NAME} was answered {ErrorCode(error).name}")
