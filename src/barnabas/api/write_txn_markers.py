"""WriteTxnMarkers (API key 27, versions 1-2): end transactions in partitions that this broker leads.

- The transaction coordinator sends it to the leaders of a transaction's partitions, and an administrator sends it to end a transaction
  that no coordinator knows (`kafka-transactions.sh abort`, KIP-664). On one node the coordinator writes its markers itself.
- Each partition succeeds or fails alone: UNKNOWN_TOPIC_OR_PARTITION without a replica here, INVALID_PRODUCER_EPOCH for a late marker,
  TRANSACTION_COORDINATOR_FENCED for a marker of a replaced coordinator.
- A marker in `__consumer_offsets` settles the offsets that the transaction committed. While their coordinator is not ready it is
  NOT_LEADER_OR_FOLLOWER, and the sender retries.

Version 1 is flexible, 2 adds the transaction version, which decides how strictly the epoch is checked (KIP-1228); before, it is 0.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import NamedTuple

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.steps import gather
from barnabas.transaction.marker_writer import Marker
from barnabas.turns import RECORD, WRITE, pace

TRANSACTION_VERSION_SINCE = 2

_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class _Outcome(NamedTuple):
    """The outcome of one marker in one partition."""

    producer_id: int
    topic: str
    partition: int
    code: ErrorCode


_MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


async def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write each marker into each of its partitions."""

    def writes() -> Iterator[Coroutine[None, None, _Outcome]]:
        for wanted in request.markers:
            marker = Marker(
                wanted.producer_id,
                wanted.producer_epoch,
                wanted.coordinator_epoch,
                wanted.transaction_result,
                wanted.transaction_version if context.version >= TRANSACTION_VERSION_SINCE else 0,
            )
            for topic in wanted.topics:
                for index in topic.partition_indexes:
                    yield _write(context, marker, topic.name, index)

    return await _response(await gather(writes(), context.services.loop, WRITE))


async def _write(context: RequestContext, marker: Marker, topic: str, index: int) -> _Outcome:
    services = context.services
    hosted = services.replica_manager.topics.get(topic)
    code = ErrorCode.NONE
    if hosted is None or index not in hosted.partitions:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        try:
            await services.transaction_coordinator.marker_writer.write(marker, (topic, index))
        except KafkaError as error:
            code = error.code
            if topic == GROUP_METADATA and code in _NOT_READY:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return _Outcome(marker.producer_id, topic, index, code)


async def _response(outcomes: list[_Outcome]) -> WriteTxnMarkersResponse:
    """Group the outcomes by producer and topic; a producer named twice has one entry, as in Kafka."""
    producers: dict[int, dict[str, list[_PartitionResult]]] = {}
    for producer_id, topic, index, code in outcomes:
        await pace(RECORD)
        partition = _PartitionResult(partition_index=index, error_code=code)
        producers.setdefault(producer_id, {}).setdefault(topic, []).append(partition)
    return WriteTxnMarkersResponse(
        markers=[
            _MarkerResult(
                producer_id=producer_id,
                topics=[_TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()],
            )
            for producer_id, topics in producers.items()
        ]
    )
