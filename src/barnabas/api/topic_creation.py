"""Topics created because someone asked about them. Control plane.

Metadata creates a topic that a client asks about, FindCoordinator the internal one that it needs; both wait for the controller here.

- A topic on its way is asked for once: a second request for it waits for the first's answer (`creating_topics`).
- A topic that exists by the time the controller looks counts as created.
- `__consumer_offsets` gets the shape of the offsets.topic.* settings, whoever asks for it.
- A replication factor above the number of live brokers is lowered to it, so that a single node works with any default.

Source: Kafka's `DefaultAutoTopicCreationManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest

__all__ = ["create_topics"]

_VERSION = 7
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
            ApiKey.CREATE_TOPICS, _VERSION, _request(context, new), principal=context.connection.principal
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


def _request(context: RequestContext, names: list[str]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[_creatable(context, name) for name in names], timeout_ms=context.services.config.request_timeout_ms
    )


def _creatable(context: RequestContext, name: str) -> CreateTopicsRequest.CreatableTopic:
    config, live = context.services.config, max(1, len(context.services.image().cluster.live_brokers()))
    if name != GROUP_METADATA:
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=config.num_partitions,
            replication_factor=min(config.default_replication_factor, live),
        )
    settings = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=config.offsets_topic_num_partitions,
        replication_factor=min(config.offsets_topic_replication_factor, live),
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
