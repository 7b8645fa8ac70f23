"""Metadata (API key 3, versions 0-13): the brokers, and topics with their partitions and leaders.

- A null list of topics asks for all, an empty one for none; version 0 has no null, and its empty list asks for all.
- Partitions are in index order: some clients map keys to partitions by their order in the response.
- `controller_id` is a live broker, this one if it is live: clients send admin requests there, and every broker forwards them.
- A request for an unknown topic creates it if `auto.create.topics.enable` and the request allow that (versions below 4 always do).
  The response waits for the creation, so that a first produce needs no retry. If the image still lacks the topic then, it is
  LEADER_NOT_AVAILABLE, never an empty list of partitions. Kafka returns UNKNOWN_TOPIC_OR_PARTITION first and the client retries.
  With so fast a creation that would mislead a consumer that gets the error and then watches for changes (kafka-go): it would take
  the new partitions for old ones, and its group would never assign them.
- A topic that was deleted a moment ago is the exception: it is UNKNOWN_TOPIC_OR_PARTITION as in Kafka, because a client that deletes
  a topic and then asks for it wants to hear that it is gone. The request still creates a new topic, which the next request sees.
- An invalid name is INVALID_TOPIC_EXCEPTION, an unknown topic id UNKNOWN_TOPIC_ID.
- Only live brokers with a listener of the connection's name are listed; a partition whose leader is not among them is
  LEADER_NOT_AVAILABLE or, from version 6, LISTENER_NOT_FOUND.
- This node knows one cluster and never returns REBOOTSTRAP_REQUIRED (version 13).

Version 4 adds the auto-creation flag, 5 offline replicas, 7 leader epochs, 8 authorized operations (KIP-430), the cluster's up to
version 10, 10 topic ids, 12 requests by topic id (KIP-516), 13 an error code for the whole response (KIP-1102).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial

from barnabas.api.authorization.metadata import metadata
from barnabas.api.offline_replicas import OfflineReplicas
from barnabas.api.serving.advertised import advertised_endpoint
from barnabas.api.serving.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.topic_creation import begin_creation, create_topics
from barnabas.metadata.image import MetadataImage, TopicImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import MetadataRequest, MetadataResponse
from barnabas.protocol.primitives import ZERO_UUID, Uuid
from barnabas.turns import ELEMENT, RECORD, pace

NULLABLE_NAME_VERSION = 12


async def handle(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    asker = context.asker
    if asker is None:
        return await _answer(context, request)
    creates_topics = context.services.config.auto_create_topics_enable
    return await metadata(asker, request, partial(_answer, context), creates_topics=creates_topics)


async def _answer(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Answer about the topics that the client may describe."""
    wanted = await _wanted(context, request)
    missing = await _to_create(context, request, wanted)
    gone = {name for name in missing if name in context.services.recent_deletions}
    if gone:
        begin_creation(context, sorted(gone))
    codes = await create_topics(context, [name for name in missing if name not in gone])
    return await _response(context, request, wanted, codes, gone)


async def _wanted(
    context: RequestContext, request: MetadataRequest
) -> list[MetadataRequest.MetadataRequestTopic] | None:
    """Return the requested topics, None for all."""
    topics = request.topics
    if topics is None or (context.version == 0 and not topics):
        return None
    for topic in topics if context.version < NULLABLE_NAME_VERSION else ():
        await pace(RECORD)
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {context.version}")
        if topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {context.version}"
            )
    return topics


async def _to_create(
    context: RequestContext, request: MetadataRequest, wanted: list[MetadataRequest.MetadataRequestTopic] | None
) -> list[str]:
    if wanted is None or not request.allow_auto_topic_creation:
        return []
    if not context.services.config.auto_create_topics_enable:
        return []
    by_name = context.services.image().topics.by_name
    missing: dict[str, None] = {}
    for topic in wanted:
        await pace(ELEMENT)
        name = topic.name
        if topic.topic_id == ZERO_UUID and name and name not in by_name and not topic_names.fault(name):
            missing[name] = None
    return list(missing)


async def _response(
    context: RequestContext,
    request: MetadataRequest,
    wanted: list[MetadataRequest.MetadataRequestTopic] | None,
    creation_codes: dict[str, int],
    gone: Set[str],
) -> MetadataResponse:
    image = context.services.image()
    brokers = _brokers(context, image)
    live = {broker.node_id for broker in brokers}
    found = _Topics(context, image, live, creation_codes, gone, request.include_topic_authorized_operations)
    topics = found.of(image.topics.by_name.values()) if wanted is None else found.asked(await _distinct(wanted))
    return MetadataResponse(
        brokers=brokers,
        cluster_id=context.services.cluster_id,
        controller_id=_controller_id(context, live),
        topics=await topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


async def _distinct(
    topics: Iterable[MetadataRequest.MetadataRequestTopic],
) -> list[MetadataRequest.MetadataRequestTopic]:
    distinct = {}
    for topic in topics:
        await pace(RECORD)
        distinct[topic.name, topic.topic_id] = topic
    return list(distinct.values())


def _brokers(context: RequestContext, image: MetadataImage) -> list[MetadataResponse.MetadataResponseBroker]:
    brokers = []
    for broker in image.cluster.live_brokers():
        endpoint = advertised_endpoint(context, broker.id)
        if endpoint is not None:
            brokers.append(
                MetadataResponse.MetadataResponseBroker(
                    node_id=broker.id, host=endpoint[0], port=endpoint[1], rack=broker.rack
                )
            )
    return brokers


def _controller_id(context: RequestContext, live: set[int]) -> int:
    if context.services.node_id in live:
        return context.services.node_id
    return min(live, default=-1)


_Topic = MetadataResponse.MetadataResponseTopic


class _Topics:
    """Make topics of one response from topics of the image."""

    def __init__(
        self,
        context: RequestContext,
        image: MetadataImage,
        live: set[int],
        creation_codes: dict[str, int],
        gone: Set[str],
        include_operations: bool,
    ) -> None:
        self._image = image
        self._live = live
        self._offline = OfflineReplicas(image, live)
        self._registered = image.cluster.brokers
        self._creation_codes = creation_codes
        self._gone = gone
        self._operations = TOPIC_OPERATIONS if include_operations else NOT_ASKED
        self._version = context.version

    async def of(self, topics: Iterable[TopicImage]) -> list[_Topic]:
        return [await self._topic(topic) for topic in topics]

    async def asked(self, topics: Iterable[MetadataRequest.MetadataRequestTopic]) -> list[_Topic]:
        made = []
        for topic in topics:
            await pace(ELEMENT)
            found = self._find(topic)
            made.append(await self._topic(found) if isinstance(found, TopicImage) else found)
        return made

    def _find(self, topic: MetadataRequest.MetadataRequestTopic) -> TopicImage | _Topic:
        """Return a topic that the request names, or the response's error for it."""
        if topic.topic_id != ZERO_UUID:
            by_id = self._image.topics.by_id.get(topic.topic_id)
            if by_id is None:
                return self._failed(None, ErrorCode.UNKNOWN_TOPIC_ID, Uuid(topic.topic_id))
            return by_id
        name = topic.name or ""
        found = self._image.topics.by_name.get(name)
        if found is not None and name not in self._gone:
            return found
        if topic_names.fault(name):
            return self._failed(name, ErrorCode.INVALID_TOPIC_EXCEPTION)
        return self._failed(name, self._creation_codes.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def _failed(self, name: str | None, code: int, topic_id: Uuid = ZERO_UUID) -> _Topic:
        return _Topic(
            error_code=code,
            name=name if name is not None or self._version >= 12 else "",
            topic_id=topic_id,
            is_internal=name in topic_names.INTERNAL_TOPICS,
            topic_authorized_operations=self._operations,
        )

    async def _topic(self, topic: TopicImage) -> _Topic:
        partitions = []
        for index, partition in topic.partitions.items():
            await pace(ELEMENT)
            partitions.append(self._partition(index, partition))
        return _Topic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in topic_names.INTERNAL_TOPICS,
            partitions=partitions,
            topic_authorized_operations=self._operations,
        )

    def _partition(self, index: int, partition: PartitionRegistration) -> MetadataResponse.MetadataResponsePartition:
        leader, live = partition.leader, self._live
        code = ErrorCode.NONE
        if leader not in live:
            is_registered = leader in self._registered and not self._registered[leader].fenced
            listener_missing = is_registered and self._version >= 6
            code = ErrorCode.LISTENER_NOT_FOUND if listener_missing else ErrorCode.LEADER_NOT_AVAILABLE
            leader = -1
        return MetadataResponse.MetadataResponsePartition(
            error_code=code,
            partition_index=index,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            offline_replicas=self._offline.of(partition),
        )
