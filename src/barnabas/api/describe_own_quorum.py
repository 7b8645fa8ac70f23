"""DescribeQuorum (API key 55, versions 0-2) on a controller's listener: the voters and observers of the metadata log.

- Only the leader knows how far the others have read. Any other controller returns NOT_LEADER_OR_FOLLOWER for the partition.
- In an envelope it fails the envelope with NOT_CONTROLLER instead, so that the broker looks for the active controller. Kafka's controller
  does not; a broker that takes it for the active one then passes NOT_LEADER_OR_FOLLOWER on until it forwards something else.
- `api.describe_quorum` is the same on a broker's listener.

Version 1 adds fetch times (KIP-836), 2 directory ids and listeners (KIP-853).

Source: Kafka's `KafkaRaftClient.handleDescribeQuorumRequest`.
"""

from __future__ import annotations

from barnabas.api.serving.context import ControllerContext
from barnabas.api.serving.forwarding import forward
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

_Response = DescribeQuorumResponse


async def handle(context: ControllerContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    try:
        response: DescribeQuorumResponse = await forward(context, request)
    except KafkaError as error:
        is_forwarded = context.connection.security_protocol is None
        if error.code != ErrorCode.NOT_CONTROLLER or is_forwarded:
            raise
        return _not_leader(context.version, request)
    return response


def _not_leader(version: int, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    topics = [
        _Response.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                _Response.PartitionData(
                    partition_index=partition.partition_index,
                    error_code=error,
                    error_message="This controller does not lead the quorum." if version >= 2 else None,
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return _Response(topics=topics)
