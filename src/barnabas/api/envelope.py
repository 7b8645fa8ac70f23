"""Envelope (API key 58, version 0): a broker forwards a client's request to the active controller.

- The inner request is handled as if the client had sent it: with its principal, client id, address and quotas.
- The envelope itself fails, with a code for the broker and not for the client, if
  - the principal cannot be read: PRINCIPAL_DESERIALIZATION_FAILURE
  - the address is not one, or the API may not be forwarded, as Envelope itself: INVALID_REQUEST
  - the inner request cannot be read: UNSUPPORTED_VERSION
  - this controller is not the active one: NOT_CONTROLLER, and the broker asks the next one.
- Every other error is in the inner response.

Sources: Kafka's `EnvelopeUtils`, `RequestChannel.Request.buildResponseSend`; KIP-590.
"""

from __future__ import annotations

import asyncio

from barnabas.api.serving.context import AnyContext, ConnectionInfo, ControllerContext
from barnabas.api.serving.dispatch import Dispatcher, RefusedRequest
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.envelope import read_address
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.framing import SIZE, parse_request_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.principal import read_principal

FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UNREGISTER_CONTROLLER,
    }
)
"""The APIs that Kafka's `ApiKeys` calls forwardable."""


class _Forwarded(Dispatcher):
    """The dispatcher of inner requests: NOT_CONTROLLER is the envelope's error and not the inner response's."""

    def _failed(self, context: AnyContext, error: BaseException) -> Message | None:
        if isinstance(error, KafkaError) and error.code == ErrorCode.NOT_CONTROLLER:
            raise error
        return super()._failed(context, error)


async def handle(context: ControllerContext, request: EnvelopeRequest) -> EnvelopeResponse:
    outer = context.connection
    principal = read_principal(request.request_principal)
    client = ConnectionInfo(
        outer.connection_id,
        outer.listener_name,
        peer_host=read_address(request.client_host_address),
        local_host=outer.local_host,
        local_port=outer.local_port,
        principal=principal,
        security_protocol=None,
    )
    # The handlers may wait, and the frame of the envelope is gone then.
    frame = memoryview(bytes(request.request_data))
    _check_api(frame)
    dispatcher = _Forwarded(context.services)
    try:
        _, response = dispatcher.dispatch(client, frame)
        if isinstance(response, asyncio.Future):
            response = await response
    except RefusedRequest as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Failed to parse forwarded request: {error}") from None
    assert response is not None, "only Produce has no response"
    (answer,) = response
    assert isinstance(answer, bytearray), "no forwardable response is in a file"
    return EnvelopeResponse(response_data=bytes(answer[SIZE.size :]))


def _check_api(frame: memoryview) -> None:
    """Raise the error of an envelope with a request that may not be in one."""
    try:
        header, _ = parse_request_header(frame)
    except KafkaError:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Failed to parse request header from envelope") from None
    if header.api_key not in FORWARDABLE:
        name = ApiKey(header.api_key).name
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {name} is not enabled or is not eligible for forwarding")
