"""DeleteTopics, by name or by id.

One RemoveTopicRecord removes a topic with its partitions and settings; brokers delete the logs when they replay it. Up to
version 5 a request lists names; from version 6 each entry is either a name or an id (KIP-516). A topic that one entry
names and another identifies is not deleted, and the response has one error for the two.

Sources: Kafka's `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from __future__ import annotations

from collections import Counter

from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ZERO_UUID


def delete_topics(
    view: ControllerView, request: messages.DeleteTopicsRequest
) -> ControllerResult[messages.DeleteTopicsResponse]:
    """Answer one DeleteTopics request.

    Raises:
        KafkaError: TOPIC_DELETION_DISABLED when delete.topic.enable is false.
    """
    if not view.settings.delete_topic_enable:
        if view.version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    asked: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    names = Counter(name for name, topic_id in asked if name is not None and topic_id == ZERO_UUID)
    ids = Counter(topic_id for name, topic_id in asked if name is None)
    by_name = view.image.topics.by_name
    named_ids = {by_name[name].topic_id for name, count in names.items() if count == 1 and name in by_name}
    response = messages.DeleteTopicsResponse()
    records: list[MetadataRecord] = []
    answered: set[tuple[str | None, bytes]] = set()
    for name, topic_id in asked:
        if (name, topic_id) in answered:
            continue
        answered.add((name, topic_id))
        if name is None and ids[topic_id] == 1 and topic_id in named_ids:
            # The response has it under its name.
            continue
        found, error = _find(view, name, topic_id, names, ids)
        if found is not None:
            name, topic_id = found.name, found.topic_id
            if error.code is ErrorCode.NONE:
                error = view.apply_partition_change_quota(len(found.partitions))
            if error.code is ErrorCode.NONE:
                records.append(messages.RemoveTopicRecord(topic_id=topic_id))
        response.responses.append(
            messages.DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
        )
    return ControllerResult(response, records)


def _find(
    view: ControllerView, name: str | None, topic_id: bytes, names: Counter[str], ids: Counter[bytes]
) -> tuple[TopicImage | None, ApiError]:
    topics = view.image.topics
    if name is not None:
        if topic_id != ZERO_UUID:
            return None, ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if names[name] > 1:
            return None, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        found = topics.by_name.get(name)
        if found is None:
            return None, ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
        if found.topic_id in ids:
            message = "The provided topic name maps to an ID that was already supplied."
            return found, ApiError(ErrorCode.INVALID_REQUEST, message)
        return found, NO_ERROR
    if topic_id == ZERO_UUID:
        return None, ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if ids[topic_id] > 1:
        return None, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    by_id = topics.by_id.get(topic_id)
    if by_id is None:
        return None, ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return by_id, NO_ERROR
