"""CreatePartitions: more partitions for topics that exist.

`count` is the new total, not the increase. Without assignments the replicas are placed as for a new topic, with the
replication factor of partition 0.

Sources: Kafka's `ReplicationControlManager.createPartitions`, KIP-195.
"""

from __future__ import annotations

from collections import Counter

from barnabas.metadata.controller_view import (
    MAX_RECORDS_PER_REQUEST,
    NO_ERROR,
    ApiError,
    ControllerResult,
    ControllerView,
)
from barnabas.metadata.create_topics import check_assignment, register_partitions
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.replica_placer import place
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError


def create_partitions(
    view: ControllerView, request: messages.CreatePartitionsRequest
) -> ControllerResult[messages.CreatePartitionsResponse]:
    """Answer one CreatePartitions request."""
    response = messages.CreatePartitionsResponse()
    records: list[MetadataRecord] = []
    names = Counter(topic.name for topic in request.topics)
    answered: set[str] = set()
    for topic in request.topics:
        if topic.name in answered:
            continue
        answered.add(topic.name)
        added: list[MetadataRecord] = []
        if names[topic.name] > 1:
            error = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        else:
            error, added = _grow(view, topic)
        records += added
        if len(records) > MAX_RECORDS_PER_REQUEST:
            message = "Excessively large number of additional partitions per request."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
        response.results.append(
            messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
        )
    return ControllerResult(response, [] if request.validate_only else records)


def _grow(
    view: ControllerView, topic: messages.CreatePartitionsRequest.CreatePartitionsTopic
) -> tuple[ApiError, list[MetadataRecord]]:
    image = view.image.topics.by_name.get(topic.name)
    if image is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), []
    now, wanted = len(image.partitions), topic.count
    if wanted == now:
        return ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s)."), []
    if wanted < now:
        message = f"The topic {topic.name} currently has {now} partition(s); {wanted} would not be an increase."
        return ApiError(ErrorCode.INVALID_PARTITIONS, message), []
    additional = wanted - now
    if additional > MAX_RECORDS_PER_REQUEST:
        message = "Excessively large number of additional partitions per request."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
    factor = len(image.partitions[0].replicas)
    if topic.assignments is not None and len(topic.assignments) != additional:
        message = (
            f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} "
            "assignment(s) were specified."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message), []
    error = view.apply_partition_change_quota(additional)
    if error.code is not ErrorCode.NONE:
        return error, []
    if topic.assignments is not None:
        assignments = [tuple(assignment.broker_ids) for assignment in topic.assignments]
        for index, replicas in enumerate(assignments):
            error = check_assignment(view, replicas, now + index, factor)
            if error.code is not ErrorCode.NONE:
                return error, []
    else:
        placement = place(list(view.image.cluster.brokers.values()), additional, factor, view.random)
        if placement.error is not None:
            return placement.error, []
        assignments = placement.assignments
    registered = register_partitions(view, assignments)
    return NO_ERROR, [r.to_record(image.topic_id, now + index) for index, r in enumerate(registered)]
