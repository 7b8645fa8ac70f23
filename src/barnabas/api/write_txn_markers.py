"""WriteTxnMarkers (27): end transactions in partitions that this broker leads. Data plane.

Versions: 1-2. Flexible from 1.

Behaviour:

- Sent by the transaction coordinator to the leaders of a transaction's partitions, and by an administrator who ends a transaction that no
  coordinator knows any more (`kafka-transactions.sh abort`, KIP-664). On one node the coordinator writes its markers itself.
- Each partition succeeds or fails for itself: UNKNOWN_TOPIC_OR_PARTITION for one that has no replica here, INVALID_PRODUCER_EPOCH for a
  marker that is late, TRANSACTION_COORDINATOR_FENCED for one of a replaced coordinator.
- A marker in `__consumer_offsets` settles the offsets that the transaction committed; while their coordinator is not ready it is
  NOT_LEADER_OR_FOLLOWER, and the sender tries again.

Version notes: 2 the transaction version, which decides how strict the epoch is judged (KIP-1228); before, 0.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import answered, gathered
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.transaction.marker_writer import Marker

TRANSACTION_VERSION_SINCE = 2

_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
_MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> asyncio.Future[WriteTxnMarkersResponse]:
    """Write each marker into each of its partitions."""
    written = []
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
                written.append(_write(context, marker, topic.name, index))
    return gathered(context.services.loop, written, _response)


def _write(
    context: RequestContext, marker: Marker, topic: str, index: int
) -> asyncio.Future[tuple[int, str, int, ErrorCode]]:
    services = context.services
    outcome: asyncio.Future[tuple[int, str, int, ErrorCode]] = services.loop.create_future()
    hosted = services.replica_manager.topics.get(topic)
    if hosted is None or index not in hosted.partitions:
        outcome.set_result((marker.producer_id, topic, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return outcome

    def failed(error: KafkaError) -> tuple[int, str, int, ErrorCode]:
        code = error.code
        if topic == GROUP_METADATA and code in _NOT_READY:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return marker.producer_id, topic, index, code

    def done(_: Any) -> tuple[int, str, int, ErrorCode]:
        return marker.producer_id, topic, index, ErrorCode.NONE

    return answered(
        services.loop, services.transaction_coordinator.marker_writer.write(marker, (topic, index)), done, failed
    )


def _response(outcomes: list[tuple[int, str, int, ErrorCode]]) -> WriteTxnMarkersResponse:
    """The outcomes by producer and topic; a producer named twice has one entry, as in Kafka."""
    producers: dict[int, dict[str, list[_PartitionResult]]] = {}
    for producer_id, topic, index, code in outcomes:
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
