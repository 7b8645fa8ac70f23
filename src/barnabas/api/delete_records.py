"""DeleteRecords (API key 21, versions 0-2): move the log start forward.

- Offset -1 means the high watermark. No reader sees records below the offset any more; the next retention run deletes whole
  segments. An offset at or below the log start changes nothing.
- An offset that is negative or above the high watermark is OFFSET_OUT_OF_RANGE, a topic with only the clean-up policy compact
  POLICY_VIOLATION, an internal topic INVALID_TOPIC_EXCEPTION.
- The low watermark in the response is the smallest log start of all replicas in service. The response waits until it is there, at most
  timeout_ms; then the partition has REQUEST_TIMED_OUT. See `replication.awaited_deletion`.

Version 1 adds nothing, 2 is flexible (KIP-107, KIP-482).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.replication.awaited_deletion import AwaitedDeletion
from barnabas.turns import ELEMENT, LOG_OPENED, pace

INVALID_LOW_WATERMARK = -1
HIGH_WATERMARK = -1

_Partition = DeleteRecordsResponse.DeleteRecordsPartitionResult


async def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete records in each partition; an error in one does not stop the others. Wait for the followers."""
    response = DeleteRecordsResponse()
    waiting: list[tuple[AwaitedDeletion, _Partition]] = []
    for topic in request.topics:
        await pace(ELEMENT)
        answered = []
        for asked in topic.partitions:
            await pace(LOG_OPENED)  # Each may open a log, and writes to it.
            index = asked.partition_index
            try:
                deletion = _delete(context, topic.name, index, asked.offset)
                answer = _Partition(partition_index=index, low_watermark=deletion.low_watermark)
                answered.append(answer)
                if deletion.error_code is None:
                    waiting.append((deletion, answer))
            except KafkaError as error:
                answered.append(
                    _Partition(partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=int(error.code))
                )
        response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=answered))
    if waiting:
        deletions = [deletion for deletion, _ in waiting]
        await context.services.replica_manager.await_deletions(deletions, max(request.timeout_ms, 0))
        for deletion, answer in waiting:
            answer.error_code = int(deletion.error_code or ErrorCode.NONE)
            answer.low_watermark = deletion.low_watermark
    return response


def _delete(context: RequestContext, topic: str, index: int, offset: int) -> AwaitedDeletion:
    """Delete the records here; the result is settled if no other replica has them."""
    partition = context.services.replica_manager.partition(topic, index)
    if partition.topic.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
    partition.check_leader()
    policy = partition.topic.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted, its records cannot be deleted by offset")
    log = partition.log
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is not an offset of {topic}-{index}")
    before = log.log_start_offset
    low_watermark = log.delete_records_before(offset)
    if low_watermark != before:
        context.services.replica_manager.log_start_moved(partition)
    deletion = AwaitedDeletion(partition, offset)
    deletion.settle()
    return deletion
