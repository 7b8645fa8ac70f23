"""AlterPartitionReassignments and ListPartitionReassignments.

A reassignment names the target replicas of a partition. New replicas are added and catch up, then the old ones are removed.

- The first change adds the new replicas. `PartitionChangeBuilder` completes the reassignment with the change after which all target
  replicas are in the ISR; this may be the first change itself.
- Null replicas cancel a reassignment that runs; if none runs, the error is NO_REASSIGNMENT_IN_PROGRESS. If no replica that would stay is
  in sync, only a topic with unclean.leader.election.enable can go back.
- A target that the partition already has is a success without a record.
- Fenced brokers are valid targets.

Difference from Kafka: a new target may keep all replicas of a reassignment that runs. Kafka then removes those that the old target
lacked.

Sources: KIP-455, KIP-860; Kafka's `ReplicationControlManager.alterPartitionReassignments`.
"""

from __future__ import annotations

from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.create_topics import check_replicas
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_change_builder import Election, PartitionChangeBuilder
from barnabas.metadata.partition_index import REASSIGNING
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.reassignment_replicas import ReassignmentReplicas, revert
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
    error = check_replicas(view, replicas, None)
    if error.code is not ErrorCode.NONE:
        return error, []
    factor = len({*partition.replicas} - {*partition.removing_replicas})
    if not may_resize and len(replicas) != factor:
        message = f"The replication factor is changed from {factor} to {len(replicas)}"
        return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message), []
    at = Hosted(topic, index, partition)
    moving = ReassignmentReplicas.between(partition.replicas, replicas)
    builder = Elections(view).builder(at, Election.ONLINE)
    builder.replicas = moving.replicas
    builder.removing_replicas = moving.removing
    # If nothing is added, the replicas that an earlier reassignment added still leave when it is cancelled.
    builder.adding_replicas = moving.adding or partition.adding_replicas
    return NO_ERROR, _changed(builder, at)


def _cancel(view: ControllerView, at: Hosted) -> tuple[ApiError, list[MetadataRecord]]:
    if not at.partition.is_reassigning:
        return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS), []
    reverted = revert(at.partition)
    if reverted is None:
        message = "Invalid replica assignment: addingReplicas contains all replicas."
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message), []
    elections = Elections(view)
    if reverted.is_unclean and not elections.is_unclean(at.topic):
        why = "because it would require an unclean leader election."
        message = f"Unable to revert partition assignment for {at.topic.name}:{at.partition_id} {why}"
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message), []
    builder = elections.builder(at)
    builder.replicas, builder.isr = reverted.replicas, reverted.isr
    builder.removing_replicas = builder.adding_replicas = ()
    return NO_ERROR, _changed(builder, at)


def _changed(builder: PartitionChangeBuilder, at: Hosted) -> list[MetadataRecord]:
    change = builder.build(at.topic.topic_id, at.partition_id)
    return [] if change is None else [change]


def list_reassignments(
    view: ControllerView, request: messages.ListPartitionReassignmentsRequest
) -> ControllerResult[messages.ListPartitionReassignmentsResponse]:
    """Answer one ListPartitionReassignments request: a null list asks for all partitions."""
    topics = view.image.topics.by_name
    if request.topics is None:
        image = view.image.topics
        running = image.partition_index.get(REASSIGNING, NOTHING)
        asked = sorted((image.by_id[topic_id].name, list(indexes)) for topic_id, indexes in running.items())
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
