"""AlterPartition: the leader of a partition proposes its in-sync replicas.

Versions served: 2 and 3. Version 3 names the epoch of each broker in the ISR (KIP-903).

The first of these that holds rejects a proposal, and then nothing changes:

    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION   there is no such partition
    NOT_CONTROLLER           the leader has a later leader or partition epoch: this controller is an old one
    FENCED_LEADER_EPOCH      the leader has an earlier leader epoch
    INVALID_REQUEST          the broker does not lead the partition
    INVALID_UPDATE_VERSION   the leader has an earlier partition epoch: the partition has changed since
    INVALID_REQUEST          a member is no replica or named twice, the leader is not in the ISR, the ISR of a leader that recovers has
                             other members, or a leader that has recovered wants to recover again
    INELIGIBLE_REPLICA       a member is not registered, shuts down, is fenced, or has another broker epoch: the broker has restarted since
                             its replica fetched up to the high watermark; or a member joins whose directory its broker does not
                             offer any more: the fetch was older than the failure, and in Kafka the replica is in the ISR again

- A change may complete a reassignment, and its leader may then be another broker. The leader gets NEW_LEADER_ELECTED although the record is
  written: it has to wait for new metadata.
- A request that changes nothing is answered with the state that the partition has.
- A request may name as many partitions as its broker leads, so its changes are appended in batches.

Sources: KIP-497, KIP-841, KIP-903; Kafka's `ReplicationControlManager.alterPartition`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.batches import in_batches
from barnabas.metadata.cluster_control import registered
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.partition_leaders import Elections, Hosted, has_directory_online, is_active
from barnabas.metadata.partition_registration import (
    LEADER_RECOVERED,
    LEADER_RECOVERING,
    NO_LEADER_CHANGE,
    PartitionRegistration,
)
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode

NO_BROKER_EPOCH = -1
"""The leader does not know the epoch of this broker."""

Response = messages.AlterPartitionResponse


def alter_partition(
    view: ControllerView, request: messages.AlterPartitionRequest
) -> ControllerResult[messages.AlterPartitionResponse]:
    """Answer one AlterPartition request.

    Raises:
        KafkaError: STALE_BROKER_EPOCH.
    """
    registered(view, request.broker_id, request.broker_epoch)
    response = messages.AlterPartitionResponse()
    return ControllerResult(response, batches=in_batches(_alter(view, request, response)))


def _alter(
    view: ControllerView, request: messages.AlterPartitionRequest, response: messages.AlterPartitionResponse
) -> Iterator[MetadataRecord | None]:
    elections = Elections(view)
    for asked in request.topics:
        answer = Response.TopicData(topic_id=asked.topic_id)
        response.topics.append(answer)
        topic = view.image.topics.by_id.get(asked.topic_id)
        yield None  # A topic is work too, even one without partitions.
        for proposal in asked.partitions:
            result = Response.PartitionData(partition_index=proposal.partition_index)
            answer.partitions.append(result)
            partition = None if topic is None else topic.partitions.get(proposal.partition_index)
            if topic is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            elif partition is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                result.error_code = _fault(view, request.broker_id, partition, proposal)
            if topic is None or partition is None or result.error_code != ErrorCode.NONE:
                yield None
            else:
                yield _change(elections, request.broker_id, topic, partition, proposal, result)


def _change(
    elections: Elections,
    broker_id: int,
    topic: TopicImage,
    partition: PartitionRegistration,
    proposal: messages.AlterPartitionRequest.PartitionData,
    result: messages.AlterPartitionResponse.PartitionData,
) -> MetadataRecord | None:
    builder = elections.builder(Hosted(topic, proposal.partition_index, partition))
    builder.isr = tuple(_isr(proposal))
    builder.leader_recovery_state = proposal.leader_recovery_state
    change = builder.build(topic.topic_id, proposal.partition_index)
    if change is not None:
        partition = partition.changed_by(change)
        if change.leader not in (broker_id, NO_LEADER_CHANGE):
            result.error_code = ErrorCode.NEW_LEADER_ELECTED
            return change
    result.leader_id, result.leader_epoch = partition.leader, partition.leader_epoch
    result.isr, result.partition_epoch = list(partition.isr), partition.partition_epoch
    result.leader_recovery_state = partition.leader_recovery_state
    return change


def _isr(proposal: messages.AlterPartitionRequest.PartitionData) -> dict[int, int]:
    """Return the epoch of each broker in the proposed ISR."""
    if proposal.new_isr_with_epochs:
        return {each.broker_id: each.broker_epoch for each in proposal.new_isr_with_epochs}
    return dict.fromkeys(proposal.new_isr, NO_BROKER_EPOCH)


def _fault(
    view: ControllerView,
    broker_id: int,
    partition: PartitionRegistration,
    proposal: messages.AlterPartitionRequest.PartitionData,
) -> ErrorCode:
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = _isr(proposal)
    is_repeated = len(isr) < max(len(proposal.new_isr_with_epochs), len(proposal.new_isr))
    if is_repeated or partition.leader not in isr or not isr.keys() <= {*partition.replicas}:
        return ErrorCode.INVALID_REQUEST
    if proposal.leader_recovery_state not in (LEADER_RECOVERED, LEADER_RECOVERING):
        return ErrorCode.INVALID_REQUEST
    is_recovering = proposal.leader_recovery_state == LEADER_RECOVERING
    if is_recovering and (len(isr) > 1 or partition.leader_recovery_state == LEADER_RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(view, partition, member, epoch) for member, epoch in isr.items()):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_eligible(view: ControllerView, partition: PartitionRegistration, broker_id: int, epoch: int) -> bool:
    broker = view.image.cluster.brokers.get(broker_id)
    if broker is None or not is_active(broker) or epoch not in (NO_BROKER_EPOCH, broker.epoch):
        return False
    return broker_id in partition.isr or has_directory_online(broker, partition, broker_id)
