"""The checks of requests that make, grow and delete topics, which the active controller decides.

- A right on the whole cluster makes the question for each topic needless; its denial is audited below INFO.
- Only a client that may describe or create a topic learns whether it exists.

Source: Kafka's `ControllerApis.createTopics`, `deleteTopics`, `createPartitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.protocol.topic_names import CLUSTER_METADATA
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["create_partitions", "create_topics", "delete_topics"]

TELLS_CONFIGS_SINCE = 5
DELETE_BY_ID_SINCE = 6

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_Deletion = DeleteTopicsRequest.DeleteTopicState
_Deleted = DeleteTopicsResponse.DeletableTopicResult


async def create_topics(
    asker: Asker, request: CreateTopicsRequest, then: Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]
) -> CreateTopicsResponse:
    """Ask for the cluster, else for each topic; then for the settings of each topic that is created."""
    denied: list[CreateTopicsRequest.CreatableTopic] = []
    if not asker.may_cluster(AclOperation.CREATE, is_loud=False):
        named = Counter(topic.name for topic in request.topics)

        def name_of(topic: CreateTopicsRequest.CreatableTopic) -> str | None:
            is_invalid = named[topic.name] > 1 or topic.name == CLUSTER_METADATA
            return None if is_invalid else topic.name

        request.topics, denied = await asker.split(request.topics, AclOperation.CREATE, ResourceType.TOPIC, name_of)
    response = await then(request)
    for result in response.topics:
        await pace(ELEMENT)
        if result.error_code or asker.version < TELLS_CONFIGS_SINCE:
            continue
        if not asker.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name, is_loud=False):
            result.topic_config_error_code = _DENIED
            result.num_partitions = result.replication_factor = -1
            result.configs = []
    for topic in denied:
        await pace(ELEMENT)
        response.topics.append(
            CreateTopicsResponse.CreatableTopicResult(
                name=topic.name,
                error_code=_DENIED,
                error_message="Authorization failed.",
                num_partitions=-1,
                replication_factor=-1,
            )
        )
    return response


async def create_partitions(
    asker: Asker,
    request: CreatePartitionsRequest,
    then: Callable[[CreatePartitionsRequest], Awaitable[CreatePartitionsResponse]],
) -> CreatePartitionsResponse:
    """Ask for each topic."""
    named = Counter(topic.name for topic in request.topics)

    def name_of(topic: CreatePartitionsRequest.CreatePartitionsTopic) -> str | None:
        return topic.name if named[topic.name] == 1 else None

    request.topics, denied = await asker.split(request.topics, AclOperation.ALTER, ResourceType.TOPIC, name_of)
    response = await then(request)
    for topic in denied:
        await pace(ELEMENT)
        response.results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(name=topic.name, error_code=_DENIED)
        )
    return response


async def delete_topics(
    asker: Asker, request: DeleteTopicsRequest, then: Callable[[DeleteTopicsRequest], Awaitable[DeleteTopicsResponse]]
) -> DeleteTopicsResponse:
    """Ask for the cluster, else whether each topic may be described, then whether it may be deleted."""
    if asker.may_cluster(AclOperation.DELETE, is_loud=False):
        return await then(request)
    by_name, topics = asker.version < DELETE_BY_ID_SINCE, asker.image().topics
    wanted = [_Deletion(name=name) for name in request.topic_names] if by_name else request.topics
    named = Counter((topic.name, topic.topic_id) for topic in wanted)

    def name_of(topic: _Deletion) -> str | None:
        if named[topic.name, topic.topic_id] > 1 or (topic.name is not None and topic.topic_id != ZERO_UUID):
            return None  # The handler refuses it.
        return topic.name if topic.name is not None else topics.name_of(topic.topic_id)

    def deletable(topic: _Deletion) -> str | None:
        name = name_of(topic)
        return name if name in topics.by_name else None  # A client that may describe it learns that it is absent.

    visible, hidden = await asker.split(wanted, AclOperation.DESCRIBE, ResourceType.TOPIC, name_of)
    allowed, kept = await asker.split(visible, AclOperation.DELETE, ResourceType.TOPIC, deletable)
    if by_name:
        request.topic_names = [topic.name for topic in allowed if topic.name is not None]
    else:
        request.topics = allowed
    response = await then(request)
    for topic in hidden:
        await pace(ELEMENT)
        response.responses.append(_refused(topic.name, topic.topic_id))
    for topic in kept:
        await pace(ELEMENT)
        response.responses.append(_refused(name_of(topic), topic.topic_id))
    return response


def _refused(name: str | None, topic_id: bytes) -> _Deleted:
    return _Deleted(name=name, topic_id=topic_id, error_code=_DENIED, error_message=_DENIED.default_message)
