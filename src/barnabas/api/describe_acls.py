"""DescribeAcls (API key 29, versions 1-3): rejected, because there is no authorizer.

- SECURITY_DISABLED, in Kafka's words.

Version 1 adds pattern types (KIP-290), 2 is flexible, 3 adds user resources (KIP-373).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeAclsRequest, DescribeAclsResponse


async def handle(context: AnyContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
