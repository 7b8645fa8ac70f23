"""A client that creates topics, one after the other, and writes down which creations were acknowledged."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.simulation.client import Asks, Connect
from tests.simulation.history import History
from tests.simulation.workload import LOST, NOT_YET

CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
NOT_NOW = {ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.TOPIC_ALREADY_EXISTS}
"""Too few brokers are up for the replicas; or an earlier attempt, whose answer was lost between brokers, has created the topic."""


class Creator:
    """Creates new-1, new-2 … until stopped.

    Args:
        replicas: of each topic.
        pause_seconds: the longest pause between two.
    """

    def __init__(self, history: History, rng: random.Random, replicas: int = 1, pause_seconds: float = 0.5) -> None:
        self._history, self._rng, self._replicas = history, rng, replicas
        self._pause_seconds = pause_seconds
        self._number = 0

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("creator")
        while True:
            self._number += 1
            name = f"new-{self._number}"
            try:
                error = await create_topic(client, name, 1, self._replicas)
            except LOST:
                error = None
            if error == ErrorCode.NONE:
                self._history.created_topics.append(name)
                loop.note(f"{name} is created", is_detail=True)
            elif error is not None and error not in NOT_YET | NOT_NOW:
                raise AssertionError(f"the creation of {name} was answered {ErrorCode(error).name}")
            await asyncio.sleep(self._rng.random() * self._pause_seconds)


async def create_topic(
    client: Asks, name: str, partitions: int, replicas: int = 1, settings: Mapping[str, str] | None = None
) -> int:
    """Ask once, and return the error code."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    topic.configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in (settings or {}).items()
    ]
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    answer = await client.request(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse)
    return int(answer.topics[0].error_code)


async def topics(client: Asks) -> set[str]:
    """Return the names of all topics."""
    answer = await client.request(ApiKey.METADATA, 9, MetadataRequest(topics=None), MetadataResponse)
    return {topic.name for topic in answer.topics}
