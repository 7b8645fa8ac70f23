"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a reader can tell whether its log has diverged. Data plane.

Versions: 2-4. Flexible from 4. librdkafka stops at 2.

Behaviour:

- The answer names the largest epoch at or below the one asked for, and the offset where it ends: the start of the next epoch, or
  the log end for the latest. Epoch and offset are -1 when the log knows no such epoch.
- current_leader_epoch is checked as in Fetch: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.

Version notes: 2 current leader epoch (KIP-320), 3 replica id, 4 flexible; earlier ones served followers (KIP-101, KIP-279).
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from barnabas.steps import in_slices

_EndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


async def handle(context: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Answer each partition for itself."""
    replicas = context.services.replica_manager
    response = OffsetForLeaderEpochResponse()
    async for topic in in_slices(request.topics):
        answered = []
        async for asked in in_slices(topic.partitions):
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
