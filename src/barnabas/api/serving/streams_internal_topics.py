"""Creates the repartition and changelog topics of a streams application.

The group coordinator finds the missing topics; this module asks the controller for them, in the name of the client, and does not wait:
the member's next heartbeats find the topics in the metadata.

- A topic is asked for once while it is being created (`creating_topics`).
- A topic that was rejected is not asked for again for twice the group's heartbeat interval; heartbeats until then return the reason.
- A topic that exists already counts as created.
- A replication factor that the topology leaves open is the broker's default; a single node has one replica (`topic_creation`).

Source: Kafka's `KafkaApis.handleStreamsGroupHeartbeat`, `DefaultAutoTopicCreationManager.createStreamsInternalTopics`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from barnabas.api.serving.context import BrokerServices, RequestContext
from barnabas.api.serving.forwarding import client_of
from barnabas.api.serving.topic_creation import CREATED, automatic_replication_factor
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult
from barnabas.group.streams.topic_configuration import (
    BROKER_DEFAULT,
    ConfiguredInternalTopic,
    StreamsStatus,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest, CreateTopicsResponse, StreamsGroupHeartbeatResponse
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.steps import in_background

logger = logging.getLogger(__name__)

_VERSION = 7
_REFUSALS_SHOWN = 3
_REFUSALS_KEPT = 1_000


def _refused(known: dict[str, tuple[str, int]], topics: Iterable[str], now_ms: int) -> dict[str, str]:
    """Return the reasons of recently rejected topics, and forget older rejections."""
    for topic in [topic for topic in topics if topic in known and known[topic][1] <= now_ms]:
        del known[topic]
    return {topic: known[topic][0] for topic in topics if topic in known}


def _remember(known: dict[str, tuple[str, int]], topic: str, reason: str, until_ms: int) -> None:
    """Keep a rejection until a time (epoch milliseconds); forget the oldest of too many."""
    known.pop(topic, None)
    known[topic] = (reason, until_ms)
    while len(known) > _REFUSALS_KEPT:
        del known[next(iter(known))]


async def create_internal_topics(context: RequestContext, result: StreamsHeartbeatResult) -> None:
    """Ask for the topics that a heartbeat found missing, and add the reasons of earlier rejections to its response."""
    if not result.to_create or not await _may_create(context, result):
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


async def _may_create(context: RequestContext, result: StreamsHeartbeatResult) -> bool:
    """Return whether the client may create all the missing topics; if not, the response says which it may not."""
    asker = context.asker
    if asker is None or asker.may_cluster(AclOperation.CREATE, is_loud=False):
        return True
    _, denied = await asker.split(result.to_create, AclOperation.CREATE, ResourceType.TOPIC, str)
    if denied:
        statuses = result.response.status or []
        detail = f"Unauthorized to CREATE on topics {', '.join(denied)}."
        for status in statuses:
            if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                status.status_detail += f"; {detail}"
                return False
        code = StreamsStatus.MISSING_INTERNAL_TOPICS
        statuses.append(StreamsGroupHeartbeatResponse.Status(status_code=code, status_detail=detail))
        result.response.status = statuses
    return not denied


def _create(context: RequestContext, topics: list[ConfiguredInternalTopic], until_ms: int) -> None:
    services = context.services
    request = CreateTopicsRequest(
        topics=[_creatable(context, topic) for topic in topics], timeout_ms=services.config.request_timeout_ms
    )
    logger.info("creating the internal topics %s", ", ".join(topic.name for topic in topics))
    created = services.controller.handle(
        ApiKey.CREATE_TOPICS,
        _VERSION,
        request,
        principal=context.connection.principal,
        client=client_of(context),
    )
    names = [topic.name for topic in topics]
    creation = in_background(_outcome(services, names, created, until_ms), services.loop)
    if not creation.done():
        services.creating_topics |= dict.fromkeys(names, creation)


async def _outcome(
    services: BrokerServices, names: list[str], created: asyncio.Future[CreateTopicsResponse], until_ms: int
) -> dict[str, int]:
    """Wait for the controller, and remember the topics that it rejects; returns a code for each, as `create_topics`."""
    codes: dict[str, int] = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
    try:
        response = await created
    except Exception as error:
        reason = error.message if isinstance(error, KafkaError) else str(error)
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        codes, refusals = dict.fromkeys(names, code), dict.fromkeys(names, reason)
    else:
        refused = [topic for topic in response.topics if topic.error_code not in CREATED]
        codes |= {topic.name: topic.error_code for topic in refused}
        refusals = {topic.name: topic.error_message or ErrorCode(topic.error_code).name for topic in refused}
    finally:
        for name in names:
            services.creating_topics.pop(name, None)
    for name, reason in refusals.items():
        logger.warning("the internal topic %s could not be created: %s", name, reason)
        _remember(services.refused_topics, name, reason, until_ms)
    return codes


def _creatable(context: RequestContext, topic: ConfiguredInternalTopic) -> CreateTopicsRequest.CreatableTopic:
    creatable = topic.creatable()
    if creatable.replication_factor == BROKER_DEFAULT:
        services = context.services
        creatable.replication_factor = automatic_replication_factor(
            services, services.config.default_replication_factor
        )
    return creatable


def _tell(response: StreamsGroupHeartbeatResponse, refused: dict[str, str]) -> None:
    for status in response.status or ():
        if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
            shown = ", ".join(f"{topic} ({reason})" for topic, reason in list(refused.items())[:_REFUSALS_SHOWN])
            more = len(refused) - _REFUSALS_SHOWN
            status.status_detail += f"; Creation failed: {shown}{f' and {more} more' if more > 0 else ''}."
            return
