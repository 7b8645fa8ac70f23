"""AlterPartitionReassignments and ListPartitionReassignments.

A reassignment names the target replicas of a partition. New replicas are added and catch up, then the old ones are
removed (KIP-455).

- Null replicas cancel a reassignment that runs; if none runs, the error is NO_REASSIGNMENT_IN_PROGRESS.
- A target that the partition already has is a success without a record.

Limits: a target with brokers that have to catch up is rejected with INVALID_REPLICA_ASSIGNMENT until followers exist.

Sources: KIP-455, KIP-860; Kafka's `ReplicationControlManager.alterPartitionReassignments`.
"""

from __future__ import annotations

from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.create_topics import check_assignment
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode


def alter_reassignments(
    view: ControllerView, request: messages.AlterPartitionReassignmentsRequest
) -> ControllerResult[messages.AlterPartitionReassignmentsResponse]:
    """Answer one AlterPartitionReassignments request."""
    response = messages.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    if request.topics:
        # As in Kafka: for an empty request the message keeps its default, which is empty, not null.
        response.error_message = None
    records: list[MetadataRecord] = []
    may_resize = request.allow_replication_factor_change
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            error, changes = _reassign(view, topic.name, partition.partition_index, partition.replicas, may_resize)
            records += changes
            results.append(
                messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=error.code, error_message=error.message
                )
            )
        response.responses.append(
            messages.AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name, partitions=results)
        )
    return ControllerResult(response, records)


def _reassign(
    view: ControllerView, name: str, index: int, replicas: list[int] | None, may_resize: bool
) -> tuple[ApiError, list[MetadataRecord]]:
    topic = view.image.topics.by_name.get(name)
    if topic is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."), []
    partition = topic.partitions.get(index)
    if partition is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."), []
    if replicas is None:
        return _cancel(view, Hosted(topic, index, partition))
    error = check_assignment(view, replicas, index, None)
    if error.code is not ErrorCode.NONE:
        return error, []
    if not may_resize and len(replicas) != len(partition.replicas):
        message = f"The replication factor is changed from {len(partition.replicas)} to {len(replicas)}"
        return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message), []
    target = tuple(replicas)
    if target == partition.replicas and not partition.is_reassigning:
        return NO_ERROR, []
    if any(replica not in partition.isr for replica in target):
        message = "Moving a partition to brokers that have to catch up first is not supported yet."
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message), []
    return NO_ERROR, _moved(view, Hosted(topic, index, partition), target)


def _cancel(view: ControllerView, at: Hosted) -> tuple[ApiError, list[MetadataRecord]]:
    partition = at.partition
    if not partition.is_reassigning:
        return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS), []
    kept = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    return NO_ERROR, _moved(view, at, kept)


def _moved(view: ControllerView, at: Hosted, target: tuple[int, ...]) -> list[MetadataRecord]:
    """Return the change to these replicas, which ends a reassignment."""
    builder = Elections(view).builder(at)
    builder.replicas = target
    builder.isr = tuple(replica for replica in at.partition.isr if replica in target)
    builder.ends_reassignment = True
    change = builder.build(at.topic.topic_id, at.partition_id)
    return [] if change is None else [change]


def list_reassignments(
    view: ControllerView, request: messages.ListPartitionReassignmentsRequest
) -> ControllerResult[messages.ListPartitionReassignmentsResponse]:
    """Answer one ListPartitionReassignments request: a null list asks for all partitions."""
    topics = view.image.topics.by_name
    if request.topics is None:
        asked = [(name, list(topics[name].partitions)) for name in sorted(topics)]
    else:
        asked = [(entry.name, entry.partition_indexes) for entry in request.topics]
    response = messages.ListPartitionReassignmentsResponse(error_message=None)
    for name, indexes in asked:
        topic = topics.get(name)
        ongoing = []
        for index in indexes:
            partition = None if topic is None else topic.partitions.get(index)
            if partition is not None and partition.is_reassigning:
                ongoing.append(
                    messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                )
        if ongoing:
            response.topics.append(
                messages.ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=name, partitions=ongoing)
            )
    return ControllerResult(response)
