"""Changes of a broker's settings that only the broker itself can check, before it forwards the request.

These are the key and trust stores of its listeners, which it reads, and `cordoned.log.dirs`, which names its directories.

    resource                                           here
    names no `listener.name.NAME.ssl.…` of a store,
    and no `cordoned.log.dirs`                         passes
    of another node                                    INVALID_REQUEST: only that node has the files
    stores that the node may not use                   INVALID_REQUEST, Kafka's words
    directories that the node does not have            INVALID_REQUEST, Kafka's words
    the client may not alter it                        passes: the controller denies it, and no file is read
    named twice, and the rest                          passes

Resources that are rejected here are left out of the request, and their answers stand where the request had them.

Deviation: a file that has changed under the same name is read here too. Kafka only writes to its log that it cannot read it.

Source: Kafka's `ConfigAdminManager.preprocess`, `DynamicBrokerConfig.validate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.serving.forwarding import forward
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.cordoned_directories import CORDONED
from barnabas.metadata.security_settings import reloadable_of_listener
from barnabas.protocol.errors import ErrorCode
from barnabas.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.turns import RECORD, pace

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext
    from barnabas.protocol.messages import (
        AlterConfigsRequest,
        AlterConfigsResponse,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    _Resource = AlterConfigsRequest.AlterConfigsResource | IncrementalAlterConfigsRequest.AlterConfigsResource

__all__ = ["forward_accepted", "rejected_settings"]

R = TypeVar("R", bound="_Resource")
Q = TypeVar("Q", "AlterConfigsRequest", "IncrementalAlterConfigsRequest")
S = TypeVar("S", "AlterConfigsResponse", "IncrementalAlterConfigsResponse")
ValuesAfter = Callable[[R, Mapping[str, str]], dict[str, str]]
"""Returns the values that a resource would have, for those that it has."""


async def rejected_settings(
    context: AnyContext, resources: Sequence[R], values_after: ValuesAfter[R]
) -> dict[int, str]:
    """Return the reason for each resource that this broker rejects, by its place."""
    rejected: dict[int, str] = {}
    if context.services.why_not_settings is None:
        return rejected
    named = Counter((each.resource_type, each.resource_name) for each in resources)
    for index, resource in enumerate(resources):
        await pace(RECORD)
        if named[resource.resource_type, resource.resource_name] > 1:
            continue
        if why := await _why_not(context, resource, values_after):
            rejected[index] = why
    return rejected


async def forward_accepted(context: AnyContext, request: Q, rejected: Mapping[int, str], kind: type[S]) -> S:
    """Forward the resources that this broker does not reject; return the response about all of them.

    Args:
        rejected: reasons, by the places of the resources, in order.
        kind: the class of the response.
    """
    resources = list(request.resources)
    request.resources = [each for index, each in enumerate(resources) if index not in rejected]
    response: S = await forward(context, request)
    for index, why in rejected.items():
        answer = kind.AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=why,
            resource_type=resources[index].resource_type,
            resource_name=resources[index].resource_name,
        )
        response.responses.insert(index, answer)
    return response


async def _why_not(context: AnyContext, resource: R, values_after: ValuesAfter[R]) -> str:
    services, name = context.services, resource.resource_name
    if services.why_not_settings is None or resource.resource_type != ConfigResourceType.BROKER or not name:
        return ""
    if not any(config.name == CORDONED or reloadable_of_listener(config.name) for config in resource.configs):
        return ""
    asker = context.asker
    if asker is not None and not asker.decides(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ""
    if name != str(services.node_id):
        return f"Unexpected broker id, expected {services.node_id}, but received {name}" if name.isdecimal() else ""
    present = services.image().configs.for_resource(ConfigResourceType.BROKER, name)
    return await services.why_not_settings(values_after(resource, present))
