"""DeleteAcls (API key 31, versions 1-3): remove the access control lists that filters select.

- `metadata.acl_control` has the rules.
- Without an authorizer SECURITY_DISABLED, in Kafka's words. A broker without one says so itself, where Kafka's asks the controller.
- The number 0 as type, pattern, operation or permission makes the request unreadable: the connection is closed.

Version 1 adds pattern types (KIP-290), 2 is flexible, 3 adds user resources (KIP-373).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.api.serving.forwarding import forward
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


async def handle(context: AnyContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    for each in request.filters:
        if 0 in (each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type):
            raise RefusedRequest("DeleteAcls with an unknown type, pattern, operation or permission")
    if context.services.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    response: DeleteAclsResponse = await forward(context, request)
    return response
