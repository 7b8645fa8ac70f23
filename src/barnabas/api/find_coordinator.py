"""FindCoordinator (API key 10). Control plane.

Versions served: 0-6.

- Key type 0, groups: the leader of the group's partition of `__consumer_offsets`, at the address that Metadata would give.
- The topic is created by the first request that needs it, as offsets.topic.* say, with no more replicas than live brokers. Kafka
  answers COORDINATOR_NOT_AVAILABLE meanwhile; here the answer waits until the topic has leaders (for a second at most), so
  that a client's first group forms without a retry.
- Key types 1 (transactions) and 2 (share groups) have no coordinator yet: COORDINATOR_NOT_AVAILABLE with a message. Type 2 before
  version 6, or with a key that is not group:topic-id:partition, and any other type: INVALID_REQUEST.

Version 1 adds the key type, 3 is flexible, 4 asks for several keys at once (KIP-699), 6 adds share groups (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.api.advertised import advertised_endpoint
from barnabas.api.context import RequestContext
from barnabas.api.topic_creation import create_topics
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_SINCE = 4
SHARE_SINCE = 6
SHARE_KEY_COLONS = 2  # group:topic id:partition
CREATION_WAIT_MS = 1_000
CREATION_POLL_MS = 5
NO_NODE = -1

Coordinator = FindCoordinatorResponse.Coordinator


def handle(
    context: RequestContext, request: FindCoordinatorRequest
) -> asyncio.Future[FindCoordinatorResponse] | FindCoordinatorResponse:
    """Find the brokers that coordinate groups."""
    keys = request.coordinator_keys if context.version >= BATCHED_SINCE else [request.key]
    kind = request.key_type
    if kind not in (GROUP, TRANSACTION, SHARE) or (kind == SHARE and context.version < SHARE_SINCE):
        return _response(context, [_missing(key, ErrorCode.INVALID_REQUEST, None) for key in keys])
    if kind != GROUP:
        return _response(context, [_not_served(kind, key) for key in keys])
    if _has_leaders(_offsets_topic(context)):
        return _response(context, [_group_coordinator(context, key) for key in keys])
    return _when_created(context, lambda: _response(context, [_group_coordinator(context, key) for key in keys]))


def _not_served(kind: int, key: str) -> Coordinator:
    if kind == SHARE and key.count(":") < SHARE_KEY_COLONS:
        return _missing(key, ErrorCode.INVALID_REQUEST, None)
    what = "Transactions are" if kind == TRANSACTION else "Share groups are"
    return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{what} not served by this broker.")


def _offsets_topic(context: RequestContext) -> TopicImage | None:
    return context.services.image().topics.by_name.get(GROUP_METADATA)


def _has_leaders(topic: TopicImage | None) -> bool:
    return topic is not None and all(partition.leader != NO_NODE for partition in topic.partitions.values())


def _group_coordinator(context: RequestContext, group_id: str) -> Coordinator:
    topic = _offsets_topic(context)
    if topic is not None:
        partition = topic.partitions.get(context.services.group_coordinator.partition_of(group_id))
        if partition is not None and partition.leader != NO_NODE:
            endpoint = advertised_endpoint(context, partition.leader)
            if endpoint is not None:
                return Coordinator(key=group_id, node_id=partition.leader, host=endpoint[0], port=endpoint[1])
    return _missing(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)


def _missing(key: str, error: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=-1, error_code=error, error_message=message or error.default_message
    )


def _response(context: RequestContext, found: list[Coordinator]) -> FindCoordinatorResponse:
    if context.version >= BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or "NONE",
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


# -- creating the topic ----------------------------------------------------------------------------------------------


def _when_created(
    context: RequestContext, respond: Callable[[], FindCoordinatorResponse]
) -> asyncio.Future[FindCoordinatorResponse]:
    """Answer once the topic has leaders, or with what there is after a while."""
    services = context.services
    future: asyncio.Future[FindCoordinatorResponse] = services.loop.create_future()
    polls_left = CREATION_WAIT_MS // CREATION_POLL_MS

    def look() -> None:
        nonlocal polls_left
        polls_left -= 1
        if future.done():
            return
        if polls_left <= 0 or _has_leaders(_offsets_topic(context)):
            future.set_result(respond())
        else:
            services.loop.call_later(CREATION_POLL_MS / 1000, look)

    if _offsets_topic(context) is None:
        create_topics(context, [GROUP_METADATA], lambda codes: look())
    else:
        look()
    return future
