"""Automatic creation of topics.

Metadata creates a missing topic that a client requests, FindCoordinator the internal topic that it needs; both wait for the controller.

- A topic is created once: a second request for it waits for the running creation (`creating_topics`).
- TOPIC_ALREADY_EXISTS from the controller counts as created.
- A coordinator's topic has its own settings (offsets.topic.*, transaction.state.log.*, share.coordinator.state.topic.*).
- A Metadata request's creation counts against the client's mutation quota, which throttles the client and rejects nothing.
- On a node that is a cluster of its own the replication factor is at most one, so that it works with any default. Such a node names no
  other, and no other broker or controller has registered.
- In a larger cluster it is the configured one: the first brokers of a start wait for the others, and no internal topic is born with one
  replica. Meanwhile the controller returns INVALID_REPLICATION_FACTOR, and a line of the log says once what a topic waits for.
- Each topic that a Metadata request creates is a line of the log that names the client: a mistyped name should not surprise anybody.

Source: Kafka's `DefaultAutoTopicCreationManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.api.serving.context import BrokerServices, Creation, RequestContext
from barnabas.api.serving.forwarding import client_of
from barnabas.api.serving.throttling import mutation_quota
from barnabas.group.parts import parts_of
from barnabas.metadata.controller_view import MAX_RECORDS_PER_REQUEST
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest
from barnabas.protocol.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE, is_internal
from barnabas.steps import in_background, shielded
from barnabas.turns import READ, pace
from barnabas.words.printable import printable

__all__ = ["automatic_replication_factor", "begin_creation", "create_internal_topic", "create_topics"]

logger = logging.getLogger(__name__)

_VERSION = 7


class _Internal(NamedTuple):
    """A coordinator's topic: the prefix of its broker settings, and its fixed topic settings."""

    prefix: str
    settings: dict[str, str]
    has_min_isr: bool


_INTERNAL = {
    GROUP_METADATA: _Internal("offsets.topic", {"cleanup.policy": "compact", "compression.type": "producer"}, False),
    TRANSACTION_STATE: _Internal(
        "transaction.state.log",
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        },
        True,
    ),
    SHARE_GROUP_STATE: _Internal(
        "share.coordinator.state.topic",
        {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
        True,
    ),
}
CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


async def create_topics(context: RequestContext, names: list[str]) -> dict[str, int]:
    """Create topics with the broker's defaults, and wait for the controller.

    Returns: an error code for each name that the image may still lack: LEADER_NOT_AVAILABLE for a topic that was created, the
        controller's code for one that it rejected.
    """
    if len(names) > MAX_RECORDS_PER_REQUEST:
        return dict.fromkeys(names, ErrorCode.POLICY_VIOLATION)  # As the controller would answer.
    codes: dict[str, int] = {}
    if not names:
        return codes
    async for part in parts_of(names):
        creations = begin_creation(context, part)
        for name in part:
            codes[name] = (await shielded(creations[name], context.services.loop))[name]
    return codes


def begin_creation(context: RequestContext, names: Sequence[str]) -> dict[str, Creation]:
    """Begin to create topics with the broker's defaults; return each one's creation, for which others may wait too."""
    creating = context.services.creating_topics
    new = [name for name in names if name not in creating]
    under_way = {name: creating[name] for name in names if name in creating}
    if new:
        creation = in_background(_create(context.services, new, context), context.services.loop)
        under_way |= dict.fromkeys(new, creation)
        if not creation.done():
            creating |= dict.fromkeys(new, creation)
    return under_way


async def create_internal_topic(services: BrokerServices, name: str, needed_by: RequestContext | None = None) -> int:
    """Create a coordinator's topic in the broker's name, or wait for the running creation.

    Args:
        needed_by: the request that needs it, whose client pays for it and is named in the log.

    Returns: an error code, as `create_topics`.
    """
    creating = services.creating_topics
    creation = creating.get(name)
    if creation is None:
        creation = in_background(_create(services, [name], needed_by, is_own=True), services.loop)
        if not creation.done():
            creating[name] = creation
    return (await shielded(creation, services.loop))[name]


async def _create(
    services: BrokerServices, names: list[str], client: RequestContext | None, *, is_own: bool = False
) -> dict[str, int]:
    """Create topics for a client, in its name or, if `is_own`, in the broker's."""
    codes: dict[str, int] = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
    request, handle = _request(services, names), services.controller.handle
    try:
        if client is None or is_own:
            quota = None if client is None else mutation_quota(client)
            response = await handle(ApiKey.CREATE_TOPICS, _VERSION, request, mutation_quota=quota, client=None)
        else:
            response = await handle(
                ApiKey.CREATE_TOPICS,
                _VERSION,
                request,
                principal=client.connection.principal,
                mutation_quota=mutation_quota(client),
                client=client_of(client),
            )
        if client is not None:
            await _log(client, [topic.name for topic in response.topics if not topic.error_code])
    except KafkaError as error:
        return dict.fromkeys(names, error.code)
    finally:
        for name in names:
            services.creating_topics.pop(name, None)
    for topic in response.topics:
        if topic.error_code not in CREATED:
            codes[topic.name] = topic.error_code
            if is_internal(topic.name):
                _warn_once(services, topic.name, topic.error_message or ErrorCode(topic.error_code).default_message)
    return codes


def _warn_once(services: BrokerServices, name: str, reason: str) -> None:
    """Say why a coordinator's topic is missing, without which its groups and transactions wait; once for each reason."""
    if services.missing_topics.get(name) != reason:
        services.missing_topics[name] = reason
        logger.warning("Cannot create the internal topic %s yet: %s", name, reason)


async def _log(client: RequestContext, created: list[str]) -> None:
    who = f"client {printable(client.client_id)}" if client.client_id else "a client"
    host = printable(client.connection.peer_host)
    for name in created:
        await pace(READ)
        if is_internal(name):
            logger.info("Created internal topic %s, which a request of %s at %s needs", name, who, host)
        else:
            logger.info(
                "Created topic %s, which %s at %s asked for; auto.create.topics.enable=false prevents this",
                name,
                who,
                host,
            )


def _request(services: BrokerServices, names: list[str]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[_creatable(services, name) for name in names], timeout_ms=services.config.request_timeout_ms
    )


def automatic_replication_factor(services: BrokerServices, configured: int) -> int:
    """Return the replication factor of a topic that is created for a request."""
    cluster = services.image().cluster
    others = (cluster.brokers.keys() | cluster.controllers.keys()) - {services.node_id}
    # A quorum that can grow begins with a node that names no other. Once another has registered, it is a cluster like any.
    is_alone = services.config.is_alone and not others
    return min(configured, 1) if is_alone else configured


def _creatable(services: BrokerServices, name: str) -> CreateTopicsRequest.CreatableTopic:
    config = services.config
    internal = _INTERNAL.get(name)
    if internal is None:
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=config.num_partitions,
            replication_factor=automatic_replication_factor(services, config.default_replication_factor),
        )
    settings = {**internal.settings, "segment.bytes": str(config.int_value(f"{internal.prefix}.segment.bytes"))}
    if internal.has_min_isr:
        settings["min.insync.replicas"] = str(config.int_value(f"{internal.prefix}.min.isr"))
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=config.int_value(f"{internal.prefix}.num.partitions"),
        replication_factor=automatic_replication_factor(
            services, config.int_value(f"{internal.prefix}.replication.factor")
        ),
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
