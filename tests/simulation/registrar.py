"""Clients that create and delete one topic through any broker, all at once, and write down what each was answered and when.

A deletion names the topic by its id. A creation that was answered TOPIC_ALREADY_EXISTS may have made that topic itself: a broker asks the
controller again when the answer is lost. So it is with a deletion that was answered UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.simulation.client import Asks, Connect
from tests.simulation.topic_operation import Kind, Outcome, TopicOperation
from tests.simulation.workload import LOST, NOT_YET

NAME = "contested"
PAUSE_SECONDS = 1.0
DELETED, CREATED = 0.6, 0.8
"""So often a client deletes the topic that it has seen, and so often it does this or creates it; else it looks."""
NOT_NOW = NOT_YET | {ErrorCode.INVALID_REPLICATION_FACTOR}


class Registrar:
    """One client, which works until stopped.

    Args:
        operations: of all registrars, in the order in which they began.
        replicas: of the topic.
    """

    def __init__(self, name: str, operations: list[TopicOperation], rng: random.Random, replicas: int) -> None:
        self.name = name
        self._operations, self._rng, self._replicas = operations, rng, replicas
        self._id: bytes | None = None
        """Of the topic that this client has seen last, None if it has seen that the topic is gone."""

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(self.name)
        while True:
            await asyncio.sleep(self._rng.random() * PAUSE_SECONDS)
            dice = self._rng.random()
            if self._id is not None and dice < DELETED:
                await self._judged(Kind.DELETE, self._delete(client, self._id), self._id)
            elif dice < CREATED:
                await self._judged(Kind.CREATE, self._create(client))
            else:
                await self._judged(Kind.LOOK, self._look(client))

    async def read_at_the_end(self, client: Asks) -> None:
        """Write down which topic is there, as a broker says that knows all; call it when nobody works any more."""
        began = asyncio.get_running_loop().time()
        error, found = await self._look(client)
        assert not error, f"{NAME} is answered {ErrorCode(error).name} at the end"
        ended = asyncio.get_running_loop().time()
        self._operations.append(TopicOperation(self.name, Kind.READ, began, ended, Outcome.DONE, found))

    async def _judged(self, kind: Kind, asked: Any, topic_id: bytes | None = None) -> None:
        """Ask, and write down what became of it."""
        loop = asyncio.get_running_loop()
        operation = TopicOperation(self.name, kind, loop.time(), topic_id=topic_id)
        self._operations.append(operation)
        try:
            error, found = await asked
        except LOST:
            return
        if error in NOT_NOW:
            return
        operation.outcome = Outcome.REFUSED if error else Outcome.DONE
        operation.ended = loop.time()
        if kind is not Kind.DELETE:
            operation.topic_id = found
        if kind is Kind.DELETE or kind is Kind.LOOK or not error:
            self._id = None if kind is Kind.DELETE else found

    async def _create(self, client: Asks) -> tuple[int, bytes | None]:
        topic = CreateTopicsRequest.CreatableTopic(name=NAME, num_partitions=1, replication_factor=self._replicas)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
        answer = await client.request(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
        result = answer.topics[0]
        return _expected(result.error_code, ErrorCode.TOPIC_ALREADY_EXISTS), (
            None if result.error_code else bytes(result.topic_id)
        )

    async def _delete(self, client: Asks, topic_id: bytes) -> tuple[int, bytes | None]:
        topic = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)
        request = DeleteTopicsRequest(topics=[topic], timeout_ms=5_000)
        answer = await client.request(ApiKey.DELETE_TOPICS, 6, request, DeleteTopicsResponse)
        return _expected(answer.responses[0].error_code, ErrorCode.UNKNOWN_TOPIC_ID), topic_id

    async def _look(self, client: Asks) -> tuple[int, bytes | None]:
        """Ask any broker; one that is behind still names a former topic."""
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=NAME)], allow_auto_topic_creation=False
        )
        answer = await client.request(ApiKey.METADATA, 12, request, MetadataResponse)
        topic = answer.topics[0]
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return 0, None
        return 0, bytes(topic.topic_id)


def _expected(code: int, refusal: ErrorCode) -> int:
    assert code in {ErrorCode.NONE, refusal} | NOT_NOW, f"{NAME} is answered {ErrorCode(code).name}"
    return code
