"""The checks of requests about settings: each resource by itself, settings of brokers, loggers and client metrics with the cluster.

Resources of unknown types, and resources that a request names twice, are left to the handler, which refuses them.

Source: Kafka's `ConfigHelper.handleDescribeConfigsRequest`, `ControllerApis.authorizeAlterResource`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.authorization.asker import DENIED
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.turns import RECORD, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

    _Resource = (
        DescribeConfigsRequest.DescribeConfigsResource
        | AlterConfigsRequest.AlterConfigsResource
        | IncrementalAlterConfigsRequest.AlterConfigsResource
    )

__all__ = ["alter_configs", "describe_configs", "incremental_alter_configs"]

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_KINDS = {
    _TOPIC: ResourceType.TOPIC,
    _GROUP: ResourceType.GROUP,
    _BROKER: ResourceType.CLUSTER,
    _BROKER_LOGGER: ResourceType.CLUSTER,
    _CLIENT_METRICS: ResourceType.CLUSTER,
}

E = TypeVar("E", bound="_Resource")
ResultT = TypeVar("ResultT")


async def _split(
    asker: Asker, resources: list[E], operation: AclOperation
) -> tuple[list[E], list[tuple[E, ErrorCode]]]:
    named = Counter((each.resource_type, each.resource_name) for each in resources)
    allowed: list[E] = []
    denied: list[tuple[E, ErrorCode]] = []
    for resource in resources:
        await pace(RECORD)
        kind = _KINDS.get(resource.resource_type)
        is_left = kind is None or (
            operation is AclOperation.ALTER_CONFIGS and named[resource.resource_type, resource.resource_name] > 1
        )
        if (
            is_left
            or kind is None
            or asker.may(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name)
        ):
            allowed.append(resource)
        else:
            denied.append((resource, DENIED[kind]))
    return allowed, denied


async def _add_denied(
    results: list[ResultT], result: Callable[..., ResultT], denied: list[tuple[E, ErrorCode]]
) -> None:
    """Add a result with the error for each resource that was denied."""
    for resource, code in denied:
        await pace(RECORD)
        results.append(
            result(
                error_code=code,
                error_message=code.default_message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )


async def describe_configs(
    asker: Asker,
    request: DescribeConfigsRequest,
    then: Callable[[DescribeConfigsRequest], Awaitable[DescribeConfigsResponse]],
) -> DescribeConfigsResponse:
    """Ask for each resource."""
    request.resources, denied = await _split(asker, request.resources, AclOperation.DESCRIBE_CONFIGS)
    response = await then(request)
    await _add_denied(response.results, DescribeConfigsResponse.DescribeConfigsResult, denied)
    return response


async def alter_configs(
    asker: Asker, request: AlterConfigsRequest, then: Callable[[AlterConfigsRequest], Awaitable[AlterConfigsResponse]]
) -> AlterConfigsResponse:
    """Ask for each resource."""
    request.resources, denied = await _split(asker, request.resources, AclOperation.ALTER_CONFIGS)
    response = await then(request)
    await _add_denied(response.responses, AlterConfigsResponse.AlterConfigsResourceResponse, denied)
    return response


async def incremental_alter_configs(
    asker: Asker,
    request: IncrementalAlterConfigsRequest,
    then: Callable[[IncrementalAlterConfigsRequest], Awaitable[IncrementalAlterConfigsResponse]],
) -> IncrementalAlterConfigsResponse:
    """Ask for each resource."""
    request.resources, denied = await _split(asker, request.resources, AclOperation.ALTER_CONFIGS)
    response = await then(request)
    await _add_denied(response.responses, IncrementalAlterConfigsResponse.AlterConfigsResourceResponse, denied)
    return response
