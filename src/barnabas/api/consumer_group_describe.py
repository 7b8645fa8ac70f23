"""ConsumerGroupDescribe (API key 69). Control plane.

Versions served: 0-1.

- Members with what they have and what they should have; partitions of topics that are gone are left out.
- A group that is not there, or is of another type: GROUP_ID_NOT_FOUND with a sentence.
- Authorized operations on request: all that a group has, as there is no authorizer.
- UNSUPPORTED_VERSION as for ConsumerGroupHeartbeat.

Version 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

import asyncio

from barnabas.api.consumer_group_heartbeat import check_consumer_groups_enabled
from barnabas.api.context import RequestContext
from barnabas.api.describe_groups import GROUP_OPERATIONS
from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.future_steps import answered, gathered
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> asyncio.Future[ConsumerGroupDescribeResponse]:
    """Describe groups of the consumer protocol, in the order asked."""
    check_consumer_groups_enabled(context)
    services = context.services

    def one(group_id: str) -> asyncio.Future[Described]:
        def refused(error: KafkaError) -> Described:
            return Described(group_id=group_id, error_code=append_error(error), error_message=append_message(error))

        if not group_id:
            future: asyncio.Future[Described] = services.loop.create_future()
            future.set_result(Described(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
            return future
        described = services.group_coordinator.read(group_id, lambda shard: shard.describe_consumer_group(group_id))
        return answered(services.loop, described, lambda group: group, refused)

    def response(groups: list[Described]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return gathered(services.loop, [one(group_id) for group_id in request.group_ids], response)
