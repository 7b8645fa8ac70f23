"""The checks of requests about client quotas; their refusals have a form of their own.

Source: Kafka's `DescribeClientQuotasRequest.getErrorResponse`, `AlterClientQuotasRequest.getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.security.acls import AclOperation
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["alter_client_quotas", "describe_client_quotas"]

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def describe_client_quotas(
    asker: Asker,
    request: DescribeClientQuotasRequest,
    then: Callable[[DescribeClientQuotasRequest], Awaitable[DescribeClientQuotasResponse]],
) -> DescribeClientQuotasResponse:
    """Ask for DESCRIBE_CONFIGS on the cluster; a refusal has neither words nor entries."""
    if asker.may_cluster(AclOperation.DESCRIBE_CONFIGS):
        return await then(request)
    return DescribeClientQuotasResponse(error_code=_DENIED, error_message=None, entries=None)


async def alter_client_quotas(
    asker: Asker,
    request: AlterClientQuotasRequest,
    then: Callable[[AlterClientQuotasRequest], Awaitable[AlterClientQuotasResponse]],
) -> AlterClientQuotasResponse:
    """Ask for ALTER_CONFIGS on the cluster; a refusal names each entity."""
    if asker.may_cluster(AclOperation.ALTER_CONFIGS):
        return await then(request)
    response = AlterClientQuotasResponse()
    for entry in request.entries:
        await pace(ELEMENT)
        entity = [
            AlterClientQuotasResponse.EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
            for each in entry.entity
        ]
        response.entries.append(
            AlterClientQuotasResponse.EntryData(
                error_code=_DENIED, error_message=_DENIED.default_message, entity=entity
            )
        )
    return response
