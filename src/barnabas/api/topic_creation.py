"""Topics created because someone asked about them. Control plane.

Metadata creates a topic that a client asks about, FindCoordinator the internal one that it needs; both wait for the controller here.

- A topic on its way is asked for once: a second request for it waits for the first's answer (`creating_topics`).
- A topic that exists by the time the controller looks counts as created.
- A coordinator's topic gets the shape of its own settings (offsets.topic.*, transaction.state.log.*, share.coordinator.state.topic.*),
  whoever asks for it.
- A topic that a client's Metadata request creates counts against its mutation quota, which makes it rest and refuses nothing.
- A replication factor above the number of live brokers is lowered to it, so that a single node works with any default.

Source: Kafka's `DefaultAutoTopicCreationManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.api.context import BrokerServices, RequestContext
from barnabas.api.throttling import mutation_quota
from barnabas.metadata.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest

__all__ = ["create_internal_topic", "create_topics"]

_VERSION = 7


class _Internal(NamedTuple):
    """A coordinator's topic: where its numbers are configured, and what its settings are always."""

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
_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def create_topics(context: RequestContext, names: list[str], answer: Callable[[dict[str, int]], None]) -> None:
    """Create topics with the broker's defaults.

    Args:
        answer: called once when all are settled, with an error code for each name that the image may still lack:
            LEADER_NOT_AVAILABLE for one that was created, the controller's code for one that was refused.
    """
    services = context.services
    creating = services.creating_topics
    new = [name for name in names if name not in creating]
    if new:
        future = services.controller.handle(
            ApiKey.CREATE_TOPICS,
            _VERSION,
            _request(services, new),
            principal=context.connection.principal,
            mutation_quota=mutation_quota(context),
        )
        for name in new:
            creating[name] = future
        future.add_done_callback(lambda _: _forget(creating, new))
    waits = list({id(creating[name]): creating[name] for name in names}.values())
    left = len(waits)

    def on_done(_: asyncio.Future[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            answer(_codes(names, waits))

    for future in waits:
        future.add_done_callback(on_done)


def _forget(creating: dict[str, asyncio.Future[Any]], names: list[str]) -> None:
    for name in names:
        creating.pop(name, None)


def create_internal_topic(services: BrokerServices, name: str) -> asyncio.Future[Any]:
    """Create a coordinator's topic on the broker's own account; the controller's answer, or that of who asked before."""
    creating = services.creating_topics
    future = creating.get(name)
    if future is None:
        future = creating[name] = services.controller.handle(ApiKey.CREATE_TOPICS, _VERSION, _request(services, [name]))
        future.add_done_callback(lambda _: _forget(creating, [name]))
    return future


def _request(services: BrokerServices, names: list[str]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[_creatable(services, name) for name in names], timeout_ms=services.config.request_timeout_ms
    )


def _creatable(services: BrokerServices, name: str) -> CreateTopicsRequest.CreatableTopic:
    config, live = services.config, max(1, len(services.image().cluster.live_brokers()))
    internal = _INTERNAL.get(name)
    if internal is None:
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=config.num_partitions,
            replication_factor=min(config.default_replication_factor, live),
        )
    settings = {**internal.settings, "segment.bytes": str(config.int_value(f"{internal.prefix}.segment.bytes"))}
    if internal.has_min_isr:
        settings["min.insync.replicas"] = str(config.int_value(f"{internal.prefix}.min.isr"))
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=config.int_value(f"{internal.prefix}.num.partitions"),
        replication_factor=min(config.int_value(f"{internal.prefix}.replication.factor"), live),
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )


def _codes(names: list[str], waits: list[asyncio.Future[Any]]) -> dict[str, int]:
    codes: dict[str, int] = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
    for future in waits:
        if future.cancelled():
            continue
        error = future.exception()
        if error is not None:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            codes.update(dict.fromkeys(names, code))
            continue
        for topic in future.result().topics:
            if topic.name in codes and topic.error_code not in _CREATED:
                codes[topic.name] = topic.error_code
    return codes
