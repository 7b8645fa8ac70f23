"""DescribeProducers (API key 61, version 0): the producers that a partition remembers.

- Lists every idempotent producer whose state has not expired: its epoch, last sequence and timestamp, and the first offset of its
  open transaction (-1 without one). Tools find hanging transactions with it.
- Any replica answers, not the leader only: `kafka-transactions find-hanging --broker-id` asks a broker about all its replicas.
- An invalid topic name is INVALID_TOPIC_EXCEPTION.

Version 0 is flexible (KIP-664).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.log.producer_state_entry import ProducerStateEntry
from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from barnabas.turns import READ, pace

NOT_HOSTED = "This server does not host this topic-partition."

_Partition = DescribeProducersResponse.PartitionResponse


async def handle(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe the producers of each partition."""
    response = DescribeProducersResponse()
    known = context.services.replica_manager.topics
    for topic in request.topics:
        await pace(READ)
        answered = []
        fault = topic_names.fault(topic.name)
        for index in topic.partition_indexes:
            await pace(READ)
            if fault is not None:
                refused = _Partition(
                    partition_index=index, error_code=int(ErrorCode.INVALID_TOPIC_EXCEPTION), error_message=fault
                )
                answered.append(refused)
                continue
            try:
                partition = context.services.replica_manager.partition(topic.name, index)
                producers = [_described(producer) for producer in partition.log.producers()]
                answered.append(_Partition(partition_index=index, active_producers=producers))
            except KafkaError as error:
                message = None if topic.name in known else NOT_HOSTED
                answered.append(_Partition(partition_index=index, error_code=int(error.code), error_message=message))
        response.topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=answered))
    return response


def _described(producer: ProducerStateEntry) -> DescribeProducersResponse.ProducerState:
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.txn_first_offset,
    )
