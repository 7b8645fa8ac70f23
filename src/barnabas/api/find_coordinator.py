"""FindCoordinator (API key 10, versions 0-6): the broker that coordinates a group, transactional id or share partition.

- It is the leader of the key's partition of the coordinator's topic: key type 0, groups, `__consumer_offsets`; 1, transactional ids,
  `__transaction_state`; 2, share partitions, `__share_group_state`. Metadata returns the same address.
- The first request that needs the topic creates it with the topic's own settings (`topic_creation`). Kafka meanwhile returns
  COORDINATOR_NOT_AVAILABLE. Here the response waits at most a second until the topic has leaders, so that a client's first group or
  transaction needs no retry. If the topic exists and the key's partition has no leader, the client retries, as in Kafka.
- INVALID_REQUEST for type 2 before version 6 or with a key that is not group:topic-id:partition, and for any other type.

Version 1 adds the key type, 3 is flexible, 4 adds several keys (KIP-699), 6 share groups (KIP-932).
"""

from __future__ import annotations

from barnabas.api.serving.advertised import advertised_endpoint
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.topic_creation import create_internal_topic
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.partition_for import partition_for
from barnabas.protocol.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.steps import sleep
from barnabas.turns import ELEMENT, pace

SHARE = 2
TOPICS = {0: GROUP_METADATA, 1: TRANSACTION_STATE, SHARE: SHARE_GROUP_STATE}
BATCHED_SINCE = 4
SHARE_SINCE = 6
SHARE_KEY_COLONS = 2  # group:topic id:partition
CREATION_WAIT_MS = 1_000
CREATION_POLL_MS = 5
NO_NODE = -1

Coordinator = FindCoordinatorResponse.Coordinator


async def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Find the brokers that coordinate groups, transactional ids or share partitions."""
    keys = request.coordinator_keys if context.version >= BATCHED_SINCE else [request.key]
    kind = request.key_type
    topic = TOPICS.get(kind)
    if topic is None or (kind == SHARE and context.version < SHARE_SINCE):
        return _response(context, [_missing(key, ErrorCode.INVALID_REQUEST) for key in keys])
    if _image_of(context, topic) is None and any(_is_valid(kind, key) for key in keys):
        await _create(context, topic)
    coordinators = []
    for key in keys:
        await pace(ELEMENT)
        coordinators.append(_coordinator(context, kind, topic, key))
    return _response(context, coordinators)


async def _create(context: RequestContext, topic: str) -> None:
    """Create the topic, and wait a while until each of its partitions has a leader."""
    code = await create_internal_topic(context.services, topic, needed_by=context)
    if code != ErrorCode.LEADER_NOT_AVAILABLE:
        return
    for _ in range(CREATION_WAIT_MS // CREATION_POLL_MS):
        if _has_leaders(_image_of(context, topic)):
            return
        await sleep(CREATION_POLL_MS / 1000, context.services.loop)


def _is_valid(kind: int, key: str) -> bool:
    return kind != SHARE or key.count(":") >= SHARE_KEY_COLONS


def _image_of(context: RequestContext, topic: str) -> TopicImage | None:
    return context.services.image().topics.by_name.get(topic)


def _has_leaders(topic: TopicImage | None) -> bool:
    return topic is not None and all(partition.leader != NO_NODE for partition in topic.partitions.values())


def _coordinator(context: RequestContext, kind: int, topic: str, key: str) -> Coordinator:
    if not _is_valid(kind, key):
        return _missing(key, ErrorCode.INVALID_REQUEST)
    image = _image_of(context, topic)
    if image is not None and image.partitions:
        partition = image.partitions.get(partition_for(key, len(image.partitions)))
        if partition is not None and partition.leader != NO_NODE:
            endpoint = advertised_endpoint(context, partition.leader)
            if endpoint is not None:
                return Coordinator(key=key, node_id=partition.leader, host=endpoint[0], port=endpoint[1])
    return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _missing(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=error)


def _response(context: RequestContext, found: list[Coordinator]) -> FindCoordinatorResponse:
    if context.version >= BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=ErrorCode(one.error_code).default_message if one.error_code else "NONE",
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
