"""ShareAcknowledge (API key 79, versions 1-2): a member of a share group accepts, releases, rejects or renews records that it holds.

- Version 2 may renew. Each partition is applied completely or not at all, and answered when the change is written.
- The request belongs to the member's share session and carries its epoch; epoch 0 gets INVALID_SHARE_SESSION_EPOCH. The last request
  (epoch -1) ends the session and releases the records that the member still holds.
- Records that the member does not hold, or no longer holds, get INVALID_RECORD_STATE. A share partition that is not here gets
  UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER with the leader.

Version notes: 1 KIP-932 (0 was early access), 2 renew and the lock's duration in the response (KIP-1222).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import (
    acknowledge,
    check_group,
    check_member,
    check_share_groups_enabled,
    lead_hints,
    read_acknowledgements,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.replication.fetch_session_cache import FINAL_EPOCH, INITIAL_EPOCH
from barnabas.share.share_partition_manager import AcknowledgeAnswer
from barnabas.turns import ELEMENT, pace

__all__ = ["handle"]

_Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse


async def handle(context: RequestContext, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Apply the acknowledgements, and answer when all are written."""
    check_share_groups_enabled(context)
    check_group(context, request.group_id)
    group_id, member_id = check_member(request.group_id, request.member_id)
    epoch = request.share_session_epoch
    manager = context.services.share.partitions
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    manager.sessions.advance(group_id, member_id, epoch)
    acknowledged = await read_acknowledgements(context, request.topics, is_renew=request.is_renew_ack)
    outcome = await acknowledge(context, group_id, member_id, acknowledged)
    if epoch == FINAL_EPOCH:
        manager.release_session(group_id, member_id)
    return await _response(context, group_id, outcome)


async def _response(context: RequestContext, group_id: str, outcome: AcknowledgeAnswer) -> ShareAcknowledgeResponse:
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.services.share.partitions.settings.lock_duration_ms(group_id)
    )
    topics: dict[bytes, _Topic] = {}
    answered = []
    for partition_id, error in outcome.items():
        await pace(ELEMENT)
        data = ShareAcknowledgeResponse.PartitionData(partition_index=partition_id.partition)
        if error is not None:
            data.error_code = int(error.code)
        topics.setdefault(partition_id.topic_id, _Topic(topic_id=partition_id.topic_id)).partitions.append(data)
        answered.append((partition_id, data))
    response.responses = list(topics.values())
    await lead_hints(context, answered, response)
    return response
