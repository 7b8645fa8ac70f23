"""The common part of the five requests to a share coordinator (API keys 83 to 87).

Each names partitions of topics by id and is answered partition by partition. A request without topics, a topic without partitions or an
empty group id gets an empty response, as in Kafka. Brokers send these requests; any client may, as there is no authorizer.

Source: Kafka's `ShareCoordinatorService`; KIP-932.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.share.state_records import SharePartitionKey
from barnabas.steps import gather
from barnabas.turns import RECORD, pace

R = TypeVar("R")
Result = TypeVar("Result")
T = TypeVar("T")

__all__ = ["answer_each"]


async def answer_each(
    context: RequestContext,
    request: Any,
    response: type[R],
    topic_result: Callable[..., object],
    call: Callable[[SharePartitionKey, Any], Awaitable[T]],
    fill: Callable[[Result, T], None] = lambda result, value: None,
) -> R:
    """Call the coordinator for each partition and put the results together.

    Args:
        response: the response's class; `topic_result` is its class for one topic.
        call: calls the coordinator, given the partition's part of the request.
        fill: puts the coordinator's result into the partition's part of the response.
    """
    if not request.group_id or not all(map(attrgetter("partitions"), request.topics)):
        return response()
    loop = context.services.loop
    new_response: Any = response

    async def of_partition(topic_id: bytes, asked: Any) -> object:
        result = new_response.PartitionResult(partition=asked.partition)
        try:
            fill(result, await call(SharePartitionKey(request.group_id, bytes(topic_id), asked.partition), asked))
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        return result

    called = (of_partition(topic.topic_id, each) for topic in request.topics for each in topic.partitions)
    results = iter(await gather(called, loop))
    answered: Any = new_response()
    for topic in request.topics:
        await pace(RECORD)
        partitions = list(islice(results, len(topic.partitions)))
        answered.results.append(topic_result(topic_id=topic.topic_id, partitions=partitions))
    return answered  # type: ignore[no-any-return]
