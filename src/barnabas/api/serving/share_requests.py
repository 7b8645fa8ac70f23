"""The common part of ShareFetch and ShareAcknowledge: checks, acknowledgements, and hints to the leaders.

- Both get UNSUPPORTED_VERSION while share.version is 0.
- A member id has 1 to 36 characters; another member id, or a missing group id, gets INVALID_REQUEST.
- Acknowledgement batches ascend, have one type for all offsets or one for each, and only known types; RENEW only in a request with
  is_renew_ack (version 2). Otherwise the partition gets INVALID_REQUEST.

Sources: KIP-932, KIP-1222 (renew); Kafka's `KafkaApis.handleAcknowledgements`, `validateAcknowledgementBatches`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.api.serving.advertised import name_leaders
from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareAcknowledgeRequest, ShareFetchRequest
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.share.acknowledgement import Acknowledgement, AcknowledgeType
from barnabas.share.sessions import TopicPartitionId
from barnabas.share.share_partition_manager import AcknowledgeAnswer
from barnabas.turns import ELEMENT, READ, pace

if TYPE_CHECKING:
    from barnabas.protocol.messages import ShareAcknowledgeResponse, ShareFetchResponse

    R = TypeVar("R", ShareFetchResponse, ShareAcknowledgeResponse)

__all__ = [
    "Acknowledged",
    "acknowledge",
    "check_group",
    "check_member",
    "check_share_groups_enabled",
    "is_share_enabled",
    "lead_hints",
    "read_acknowledgements",
]

_Batch = ShareFetchRequest.AcknowledgementBatch | ShareAcknowledgeRequest.AcknowledgementBatch

SHARE_FEATURE = "share.version"
MEMBER_ID_MAX = 36
RENEW_VERSION = 2
POINTS_TO_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def is_share_enabled(context: RequestContext) -> bool:
    """Return whether the cluster's share.version allows share groups."""
    return context.services.image().features.level(SHARE_FEATURE) >= 1


def check_share_groups_enabled(context: RequestContext) -> None:
    """Raise: KafkaError UNSUPPORTED_VERSION while the cluster's share.version is 0."""
    if not is_share_enabled(context):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def check_group(context: RequestContext, group_id: str | None, operation: AclOperation = AclOperation.READ) -> None:
    """Raise KafkaError GROUP_AUTHORIZATION_FAILED unless the client may do that to the group; the null group is left to others."""
    if group_id is not None and (asker := context.asker) is not None:
        asker.need(operation, ResourceType.GROUP, group_id)


def check_member(group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """Return both ids.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > MEMBER_ID_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


class Acknowledged(NamedTuple):
    """The acknowledgements of a request: those to apply, and the answers of partitions that are invalid or have none."""

    batches: dict[TopicPartitionId, list[Acknowledgement]]
    settled: AcknowledgeAnswer


async def read_acknowledgements(
    context: RequestContext,
    topics: Iterable[ShareFetchRequest.FetchTopic | ShareAcknowledgeRequest.AcknowledgeTopic],
    *,
    is_renew: bool,
    only_with_batches: bool = False,
) -> Acknowledged:
    """Read the acknowledgement batches of a request of either kind.

    Args:
        only_with_batches: skip partitions without batches, which a ShareFetch names to read them.
    """
    by_id, asker = context.services.image().topics.by_id, context.asker
    batches: dict[TopicPartitionId, list[Acknowledgement]] = {}
    settled: AcknowledgeAnswer = {}
    most = AcknowledgeType.RENEW if context.version >= RENEW_VERSION else AcknowledgeType.REJECT
    for topic in topics:
        await pace(READ)
        known = by_id.get(topic.topic_id)
        asked: Sequence[ShareFetchRequest.FetchPartition | ShareAcknowledgeRequest.AcknowledgePartition] = (
            topic.partitions
        )
        for partition in asked:
            await pace(READ)
            if only_with_batches and not partition.acknowledgement_batches:
                continue
            partition_id = TopicPartitionId(bytes(topic.topic_id), partition.partition_index)
            if known is None:
                settled[partition_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            elif not _are_valid(partition.acknowledgement_batches, most, is_renew=is_renew):
                settled[partition_id] = KafkaError(ErrorCode.INVALID_REQUEST)
            elif asker is not None and not asker.may(AclOperation.READ, ResourceType.TOPIC, known.name):
                settled[partition_id] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif partition.partition_index not in known.partitions:
                settled[partition_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not partition.acknowledgement_batches:
                settled[partition_id] = None
            else:
                batches[partition_id] = [
                    Acknowledgement(batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types))
                    for batch in partition.acknowledgement_batches
                ]
    return Acknowledged(batches, settled)


def _are_valid(batches: Iterable[_Batch], most: int, *, is_renew: bool) -> bool:
    previous_end = -1
    for batch in batches:
        types = batch.acknowledge_types
        if (
            batch.first_offset > batch.last_offset
            or batch.first_offset < previous_end
            or not types
            or (len(types) > 1 and batch.last_offset - batch.first_offset != len(types) - 1)
            or any(not 0 <= kind <= most for kind in types)
            or (AcknowledgeType.RENEW in types and not is_renew)
        ):
            return False
        previous_end = batch.last_offset
    return True


async def acknowledge(
    context: RequestContext, group_id: str, member_id: str, acknowledged: Acknowledged
) -> AcknowledgeAnswer:
    """Apply the acknowledgements; returns the outcome of every partition of the request."""
    if not acknowledged.batches:
        return acknowledged.settled
    outcome = await context.services.share.partitions.acknowledge(group_id, member_id, acknowledged.batches)
    return {**outcome, **acknowledged.settled}


async def lead_hints(
    context: RequestContext,
    answered: Iterable[tuple[TopicPartitionId, Any]],
    response: R,
) -> None:
    """Name the leaders of the partitions that this broker does not lead (KIP-951)."""
    topics = context.services.image().topics.by_id
    leaders = set()
    for partition_id, data in answered:
        await pace(ELEMENT)
        topic = topics.get(partition_id.topic_id)
        registration = None if topic is None else topic.partitions.get(partition_id.partition)
        if data.error_code in POINTS_TO_LEADER and registration is not None:
            data.current_leader = type(response).LeaderIdAndEpoch(
                leader_id=registration.leader, leader_epoch=registration.leader_epoch
            )
            leaders.add(registration.leader)
    name_leaders(context, response, leaders)
