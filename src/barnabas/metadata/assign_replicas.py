"""AssignReplicasToDirs: a broker says in which of its directories its replicas are (KIP-858).

- A broker with one directory need not: the controller records new replicas there when it places them. A broker with several directories
  chooses one and reports it. So does a broker that returns with another disk; a partition without a leader may then elect its replica.
- The last known leader that returns with another disk has none of the partition's records. It no longer counts as one, so the
  partition waits for an operator (`cluster accept-loss`), who may find the disk. In Kafka it leads, and the others cut off their logs.
- Likewise an eligible replica that has moved from a directory that its broker does not offer any more is not eligible any more. In
  Kafka it may lead with an empty log.
- A replica in a directory that its broker does not offer (any more) leaves the ISR, and cannot lead.
- Errors are per partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, and NOT_LEADER_OR_FOLLOWER if the broker has no replica of it.
- A request may name as many partitions as its broker has, so its changes are appended in batches.

Source: Kafka's `ReplicationControlManager.handleAssignReplicasToDirs`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.batches import in_batches
from barnabas.metadata.cluster_control import registered
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED
from barnabas.metadata.metadata_version import DIRECTORY_ASSIGNMENT_SINCE
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.partition_registration import NO_LEADER, PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError

Request, Response = messages.AssignReplicasToDirsRequest, messages.AssignReplicasToDirsResponse


def assign_replicas_to_dirs(
    view: ControllerView, request: messages.AssignReplicasToDirsRequest
) -> ControllerResult[messages.AssignReplicasToDirsResponse]:
    """Answer one AssignReplicasToDirs request.

    Raises:
        KafkaError: UNSUPPORTED_VERSION before metadata.version 3.7-IV2, STALE_BROKER_EPOCH.
    """
    if (view.image.features.metadata_version or 0) < DIRECTORY_ASSIGNMENT_SINCE:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    registered(view, request.broker_id, request.broker_epoch)
    response = Response()
    return ControllerResult(response, batches=in_batches(_assign(view, request, response)))


def _assign(
    view: ControllerView, request: messages.AssignReplicasToDirsRequest, response: messages.AssignReplicasToDirsResponse
) -> Iterator[MetadataRecord | None]:
    offered = view.image.cluster.brokers[request.broker_id].directories
    for asked in request.directories:
        directory = Response.DirectoryData(id=asked.id)
        response.directories.append(directory)
        is_offered = asked.id in offered
        broker_id = request.broker_id
        elections = Elections(view, assigned=broker_id) if is_offered else Elections(view, gone=broker_id)
        for named in asked.topics:
            topic = Response.TopicData(topic_id=named.topic_id)
            directory.topics.append(topic)
            yield None  # A topic is work too, even one without partitions.
            for partition in named.partitions:
                at = _find(view, request.broker_id, named.topic_id, partition.partition_index)
                result = Response.PartitionData(partition_index=partition.partition_index)
                topic.partitions.append(result)
                if isinstance(at, ErrorCode):
                    result.error_code = at
                    yield None
                else:
                    yield _change(view, elections, at, request.broker_id, asked.id, is_offered=is_offered)


def _find(view: ControllerView, broker_id: int, topic_id: bytes, index: int) -> Hosted | ErrorCode:
    topic = view.image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return Hosted(topic, index, partition)


def _change(
    view: ControllerView, elections: Elections, at: Hosted, broker_id: int, directory_id: bytes, *, is_offered: bool
) -> MetadataRecord | None:
    has_lost_its_log = is_offered and _is_on_another_disk(view, at.partition, broker_id)
    led_last = has_lost_its_log and _led_last(at.partition, broker_id)
    if led_last:
        at = at._replace(partition=at.partition._replace(last_known_elr=()))
    builder = elections.builder(at)
    builder.directories = {broker_id: directory_id}
    if has_lost_its_log:
        builder.lost = frozenset((broker_id,))
    if not is_offered:
        builder.isr = tuple(replica for replica in at.partition.isr if replica != broker_id)
    record = builder.build(at.topic.topic_id, at.partition_id)
    if record is not None and led_last:
        record.last_known_elr = []
    return record


def _led_last(partition: PartitionRegistration, broker_id: int) -> bool:
    """Return whether a broker is the last known leader of a partition that has none."""
    return partition.leader == NO_LEADER and not partition.isr and broker_id in partition.last_known_elr


def _is_on_another_disk(view: ControllerView, partition: PartitionRegistration, broker_id: int) -> bool:
    """Return whether a replica's directory is one that its broker does not offer any more: it begins with an empty log in another one."""
    position = partition.replicas.index(broker_id)
    former = partition.directories[position] if position < len(partition.directories) else UNASSIGNED
    return former not in (UNASSIGNED, MIGRATING, *view.image.cluster.brokers[broker_id].directories)
