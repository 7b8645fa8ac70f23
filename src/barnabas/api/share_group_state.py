"""What the five requests to a share coordinator have in common (API keys 83 to 87). Control plane.

Each names partitions of topics by id, and is answered partition by partition. A request without topics, a topic without partitions or an
empty group id gets an empty answer, as in Kafka. Brokers send these to each other; anyone may, as there is no authorizer.

Source: Kafka's `ShareCoordinatorService`; KIP-932.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import gathered, mapped
from barnabas.protocol.errors import ErrorCode
from barnabas.share.share_coordinator_shard import StateOutcome
from barnabas.share.state_records import SharePartitionKey

T = TypeVar("T")

__all__ = ["answer_each"]


def answer_each(
    context: RequestContext,
    request: Any,
    response: Any,
    topic_result: Any,
    ask: Callable[[SharePartitionKey, Any], asyncio.Future[StateOutcome[T]]],
    fill: Callable[[Any, T], None] = lambda result, value: None,
) -> asyncio.Future[Any]:
    """Ask the coordinator about each partition, and put the answers together.

    Args:
        response: the response's class; `topic_result` is its class for one topic.
        ask: about one partition, given its part of the request.
        fill: puts what the coordinator gave into a partition's part of the response.
    """
    loop = context.services.loop
    if not request.group_id or any(not topic.partitions for topic in request.topics):
        empty: asyncio.Future[Any] = loop.create_future()
        empty.set_result(response())
        return empty

    def one(topic_id: bytes, partition: Any) -> asyncio.Future[Any]:
        key = SharePartitionKey(request.group_id, bytes(topic_id), partition.partition)

        def result(outcome: StateOutcome[T]) -> Any:
            answered = response.PartitionResult(partition=partition.partition)
            if outcome.error is not ErrorCode.NONE:
                answered.error_code = outcome.error
                answered.error_message = outcome.message
            elif outcome.value is not None:
                fill(answered, outcome.value)
            return answered

        return mapped(loop, ask(key, partition), result)

    def topic(asked: Any) -> asyncio.Future[Any]:
        return gathered(
            loop,
            [one(asked.topic_id, partition) for partition in asked.partitions],
            lambda partitions: topic_result(topic_id=asked.topic_id, partitions=partitions),
        )

    def combine(results: Sequence[Any]) -> Any:
        return response(results=list(results))

    return gathered(loop, [topic(asked) for asked in request.topics], combine)
