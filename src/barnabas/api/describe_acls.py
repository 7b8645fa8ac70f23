"""DescribeAcls (API key 29, versions 1-3): the access control lists that a filter selects.

- Each node answers from its own image; the request is not forwarded.
- Without an authorizer SECURITY_DISABLED, in Kafka's words.
- The number 0 as type, pattern, operation or permission makes the request unreadable: the connection is closed. Another number that is
  not known selects nothing.

Version 1 adds pattern types (KIP-290), 2 is flexible, 3 adds user resources (KIP-373).

Source: Kafka's `AclApis.handleDescribeAcls`, `DescribeAclsResponse.aclsResources`.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeAclsRequest, DescribeAclsResponse
from barnabas.security.acls import AclFilter
from barnabas.turns import ELEMENT, pace

_Resource = DescribeAclsResponse.DescribeAclsResource
_Description = DescribeAclsResponse.AclDescription


async def handle(context: AnyContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    numbers = (request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if 0 in numbers:
        raise RefusedRequest("DescribeAcls with an unknown type, pattern, operation or permission")
    if context.services.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    resources: dict[tuple[int, str, int], _Resource] = {}
    for acl in context.services.image().acls.entries.values():
        await pace(ELEMENT)
        if not wanted.matches(acl):
            continue
        pattern = acl.resource_type, acl.resource_name, acl.pattern_type
        if pattern not in resources:
            resources[pattern] = _Resource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type
            )
        description = _Description(
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
        )
        resources[pattern].acls.append(description)
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
