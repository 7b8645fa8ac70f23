"""Creates the repartition and changelog topics of a streams application. Control plane.

The group coordinator says which are missing and what they must look like; this asks the controller for them, in the name of the
client, and does not wait: the member's next heartbeats find the topics in the metadata.

- A topic on its way is asked for once (`creating_topics`).
- A topic that was refused is not asked for again for twice the group's heartbeat interval; heartbeats until then say why it was refused.
- A topic that exists by the time the controller looks counts as created.
- A replication factor that the topology leaves open is the broker's, lowered to the number of live brokers, so that a single node
  works with any default.

Source: Kafka's `KafkaApis.handleStreamsGroupHeartbeat`, `DefaultAutoTopicCreationManager.createStreamsInternalTopics`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult
from barnabas.group.streams.topic_configuration import (
    BROKER_DEFAULT,
    ConfiguredInternalTopic,
    StreamsStatus,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest, CreateTopicsResponse, StreamsGroupHeartbeatResponse

logger = logging.getLogger(__name__)

_VERSION = 7
_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
_REFUSALS_SHOWN = 3
_REFUSALS_KEPT = 1_000


def _refused(known: dict[str, tuple[str, int]], topics: Iterable[str], now_ms: int) -> dict[str, str]:
    """The reasons for those of the topics that were refused a short while ago; older refusals are forgotten."""
    for topic in [topic for topic in topics if topic in known and known[topic][1] <= now_ms]:
        del known[topic]
    return {topic: known[topic][0] for topic in topics if topic in known}


def _remember(known: dict[str, tuple[str, int]], topic: str, reason: str, until_ms: int) -> None:
    """Keep a refusal until then (epoch milliseconds); the oldest of too many is forgotten."""
    known.pop(topic, None)
    known[topic] = (reason, until_ms)
    while len(known) > _REFUSALS_KEPT:
        del known[next(iter(known))]


def create_internal_topics(context: RequestContext, result: StreamsHeartbeatResult) -> None:
    """Ask for the topics that a heartbeat found missing, and add to its answer why earlier ones were refused."""
    if not result.to_create:
        return
    services = context.services
    refused = _refused(services.refused_topics, result.to_create, services.now_ms())
    creating = services.creating_topics
    new = [topic for name, topic in result.to_create.items() if name not in creating and name not in refused]
    if new:
        _create(context, new, until_ms=services.now_ms() + 2 * result.response.heartbeat_interval_ms)
        refused = _refused(services.refused_topics, result.to_create, services.now_ms())
    if refused:
        _tell(result.response, refused)


def _create(context: RequestContext, topics: list[ConfiguredInternalTopic], until_ms: int) -> None:
    services = context.services
    request = CreateTopicsRequest(
        topics=[_creatable(context, topic) for topic in topics], timeout_ms=services.config.request_timeout_ms
    )
    logger.info("creating the internal topics %s", ", ".join(topic.name for topic in topics))
    future: asyncio.Future[Any] = services.controller.handle(
        ApiKey.CREATE_TOPICS, _VERSION, request, principal=context.connection.principal
    )
    for topic in topics:
        services.creating_topics[topic.name] = future

    def on_done(done: asyncio.Future[Any]) -> None:
        for topic in topics:
            services.creating_topics.pop(topic.name, None)
        for name, reason in _refusals(done, [topic.name for topic in topics]).items():
            logger.warning("the internal topic %s could not be created: %s", name, reason)
            _remember(services.refused_topics, name, reason, until_ms)

    if future.done():
        on_done(future)
    else:
        future.add_done_callback(on_done)


def _creatable(context: RequestContext, topic: ConfiguredInternalTopic) -> CreateTopicsRequest.CreatableTopic:
    creatable = topic.creatable()
    if creatable.replication_factor == BROKER_DEFAULT:
        live = max(1, len(context.services.image().cluster.live_brokers()))
        creatable.replication_factor = min(context.services.config.default_replication_factor, live)
    return creatable


def _refusals(done: asyncio.Future[Any], names: list[str]) -> dict[str, str]:
    if done.cancelled():
        return {}
    error = done.exception()
    if error is not None:
        reason = error.message if isinstance(error, KafkaError) else str(error)
        return dict.fromkeys(names, reason)
    response: CreateTopicsResponse = done.result()
    return {
        topic.name: topic.error_message or ErrorCode(topic.error_code).name
        for topic in response.topics
        if topic.error_code not in _CREATED
    }


def _tell(response: StreamsGroupHeartbeatResponse, refused: dict[str, str]) -> None:
    for status in response.status or ():
        if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
            shown = ", ".join(f"{topic} ({reason})" for topic, reason in list(refused.items())[:_REFUSALS_SHOWN])
            more = len(refused) - _REFUSALS_SHOWN
            status.status_detail += f"; Creation failed: {shown}{f' and {more} more' if more > 0 else ''}."
            return
