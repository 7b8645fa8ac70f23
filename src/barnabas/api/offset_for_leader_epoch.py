"""OffsetForLeaderEpoch (API key 23, versions 2-4): where a leader epoch ended.

- A reader finds out whether its log has diverged. The response has the largest epoch at or below the requested one, and the offset
  where it ends: the start of the next epoch, or the log end for the latest. Both are -1 if the log has no such epoch.
- current_leader_epoch is checked as in Fetch: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.

Version 2 adds the current leader epoch (KIP-320; librdkafka stops here), 3 the replica id, 4 is flexible. Earlier versions served
followers (KIP-101, KIP-279).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from barnabas.turns import READ, pace

_EndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


async def handle(context: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Look up the epoch in each partition."""
    replicas = context.services.replica_manager
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        await pace(READ)
        answered = []
        for asked in topic.partitions:
            await pace(READ)
            try:
                partition = replicas.partition(topic.topic, asked.partition)
                partition.check_leader(asked.current_leader_epoch)
                epoch, end_offset = partition.last_offset_for_leader_epoch(asked.leader_epoch)
                answered.append(_EndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset))
            except KafkaError as error:
                answered.append(_EndOffset(partition=asked.partition, error_code=int(error.code)))
        response.topics.append(
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=answered)
        )
    return response
