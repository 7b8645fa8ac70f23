"""CreateAcls (key 30), versions 1-3. Control plane.

- Without an authorizer there are no ACLs to speak of: SECURITY_DISABLED, in Kafka's words.

v1 pattern types (KIP-290); v2 flexible; v3 user resources (KIP-373).
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateAclsRequest, CreateAclsResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
