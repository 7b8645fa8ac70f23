"""The operations that a client may perform, as the bits of a response field.

Without an authorizer every client may do everything: the field has every operation of the resource type, bit n for `AclOperation` n.
If the client did not ask for it the field keeps its default, the lowest 32-bit integer.

Source: Kafka's `AuthHelper.authorizedOperations`, `AclEntry.supportedOperations`; KIP-430.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.turns import RECORD, pace

if TYPE_CHECKING:
    from barnabas.protocol import messages

    DescribeRequest = (
        messages.DescribeGroupsRequest
        | messages.ConsumerGroupDescribeRequest
        | messages.ShareGroupDescribeRequest
        | messages.StreamsGroupDescribeRequest
    )
    DescribedGroup = (
        messages.DescribeGroupsResponse.DescribedGroup
        | messages.ConsumerGroupDescribeResponse.DescribedGroup
        | messages.ShareGroupDescribeResponse.DescribedGroup
        | messages.StreamsGroupDescribeResponse.DescribedGroup
    )

__all__ = ["CLUSTER_OPERATIONS", "GROUP_OPERATIONS", "NOT_ASKED", "TOPIC_OPERATIONS", "add_group_operations"]

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED = -(1 << 31)
TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE
)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)


async def add_group_operations(request: DescribeRequest, groups: Sequence[DescribedGroup]) -> None:
    """Fill in the operations of groups that were found, if the request asks for them."""
    if request.include_authorized_operations:
        for group in groups:
            await pace(RECORD)
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
