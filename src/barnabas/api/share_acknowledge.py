"""ShareAcknowledge (79): a member of a share group says what became of records that it holds. Data plane.

Versions: 1-2. Flexible from 1.

Behaviour:

- Accept, release, reject, or from version 2 renew; each partition is taken whole or not at all, and answered when it is written down.
- The request is one of the member's share session and carries its epoch; epoch 0 is INVALID_SHARE_SESSION_EPOCH. The last request (epoch
  -1) ends the session, and what the member still holds is released.
- Records that the member does not hold (any more): INVALID_RECORD_STATE. A share partition that is not here:
  UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER with the leader.

Version notes: 1 KIP-932 (0 was early access), 2 renew and the lock's duration in the answer (KIP-1222).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import (
    acknowledge,
    check_member,
    check_share_groups_enabled,
    lead_hints,
    read_acknowledgements,
)
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from barnabas.share.share_partition_manager import AcknowledgeAnswer

__all__ = ["handle"]

_Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse


def handle(context: RequestContext, request: ShareAcknowledgeRequest) -> asyncio.Future[ShareAcknowledgeResponse]:
    """Answer when all is written down."""
    check_share_groups_enabled(context)
    group_id, member_id = check_member(request.group_id, request.member_id)
    epoch = request.share_session_epoch
    manager = context.services.share.partitions
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    manager.sessions.advance(group_id, member_id, epoch)
    acknowledged = read_acknowledgements(context, request.topics, is_renew=request.is_renew_ack)
    answer = acknowledge(context, group_id, member_id, acknowledged)

    def respond(outcome: AcknowledgeAnswer) -> ShareAcknowledgeResponse:
        if epoch == FINAL_EPOCH and manager.sessions.get(group_id, member_id) is not None:
            manager.release_session(group_id, member_id)
        return _response(context, group_id, outcome)

    return mapped(context.services.loop, answer, respond)


def _response(context: RequestContext, group_id: str, outcome: AcknowledgeAnswer) -> ShareAcknowledgeResponse:
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.services.share.partitions.settings.lock_duration_ms(group_id)
    )
    topics: dict[bytes, _Topic] = {}
    answered = []
    for partition_id, error in outcome.items():
        data = ShareAcknowledgeResponse.PartitionData(partition_index=partition_id.partition)
        if error is not None:
            data.error_code = int(error.code)
        topics.setdefault(partition_id.topic_id, _Topic(topic_id=partition_id.topic_id)).partitions.append(data)
        answered.append((partition_id, data))
    response.responses = list(topics.values())
    lead_hints(context, answered, response)
    return response
