"""DeleteAcls (API key 31, versions 1-3): rejected, because there is no authorizer.

- SECURITY_DISABLED, in Kafka's words.

Version 1 adds pattern types (KIP-290), 2 is flexible, 3 adds user resources (KIP-373).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


async def handle(context: AnyContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
