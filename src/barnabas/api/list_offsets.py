"""ListOffsets (API key 2, versions 1-11): the offset at a timestamp, or at an end of the log.

- `replication.offset_lookup` explains the special timestamps -1 to -6. A debugging reader (replica id -2) and followers see the
  whole log, so that -1 gives them the log end.
- Any other timestamp: the first record at or after it, if the reader may see that record; else offset and timestamp are -1
  without an error.
- A negative timestamp that the version does not know is UNSUPPORTED_VERSION. A partition named twice is INVALID_REQUEST, once.
- The response's leader epoch is the epoch of the record, or the current one for -1.
- A new leader that may not know the end yet returns OFFSET_NOT_AVAILABLE (KIP-207), up to version 4 LEADER_NOT_AVAILABLE.

Version 2 adds the isolation level (KIP-98), 4 leader epochs (KIP-320), 5 OFFSET_NOT_AVAILABLE, 6 is flexible, 7 adds max
timestamp (KIP-734), 8 earliest local and 9 latest tiered (KIP-405, KIP-1005), 10 timeout_ms, which has no effect here, 11 earliest
pending upload (KIP-1023).
"""

from __future__ import annotations

from collections import Counter

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from barnabas.replication.offset_lookup import FoundOffset, find_offset
from barnabas.turns import ELEMENT, LOG_OPENED, pace

LEADER_EPOCH_VERSION = 4
OFFSET_NOT_AVAILABLE_VERSION = 5
# Special timestamp → its first version.
_SPECIAL = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}

_AskedPartition = ListOffsetsRequest.ListOffsetsPartition
_Partition = ListOffsetsResponse.ListOffsetsPartitionResponse


async def handle(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up one offset per partition."""
    named: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        await pace(ELEMENT)
        for asked in topic.partitions:
            await pace(ELEMENT)
            named[topic.name, asked.partition_index] += 1
    response = ListOffsetsResponse()
    for topic in request.topics:
        await pace(ELEMENT)
        answered = []
        for asked in topic.partitions:
            await pace(LOG_OPENED)
            times = named[topic.name, asked.partition_index]
            if times != 1:
                if times > 1:
                    answered.append(_failed(asked.partition_index, ErrorCode.INVALID_REQUEST))
                    named[topic.name, asked.partition_index] = 0
            else:
                answered.append(await _answer(context, request, topic.name, asked))
        response.topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answered))
    return response


async def _answer(
    context: RequestContext, request: ListOffsetsRequest, topic: str, asked: _AskedPartition
) -> _Partition:
    timestamp = asked.timestamp
    if timestamp < 0 and context.version < _SPECIAL.get(timestamp, 1 << 15):
        return _failed(asked.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    try:
        partition = context.services.replica_manager.partition(topic, asked.partition_index)
        if request.replica_id == -2:
            partition.check_epoch(asked.current_leader_epoch)
        else:
            partition.check_leader(asked.current_leader_epoch)
        isolation_level = request.isolation_level if request.replica_id == -1 else None
        run = context.services.loop.run_in_executor
        found = await find_offset(partition, timestamp, isolation_level, run)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.OFFSET_NOT_AVAILABLE and context.version < OFFSET_NOT_AVAILABLE_VERSION:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return _failed(asked.partition_index, code)
    return _found(context.version, asked.partition_index, found)


def _found(version: int, index: int, found: FoundOffset) -> _Partition:
    return _Partition(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= LEADER_EPOCH_VERSION else -1,
    )


def _failed(index: int, code: ErrorCode) -> _Partition:
    return _Partition(partition_index=index, error_code=int(code))
