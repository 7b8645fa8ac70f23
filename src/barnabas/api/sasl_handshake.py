"""SaslHandshake (API key 17, versions 0-1): the client chooses its mechanism.

- The response lists the mechanisms of the listener.
- UNSUPPORTED_SASL_MECHANISM if the listener has not enabled it. The answer waits for `connection.failed.authentication.delay.ms`, and the
  connection closes.
- A client that has logged in may log in again (KIP-368), with the same mechanism.
- ILLEGAL_SASL_STATE on a listener without SASL.

After version 0 the tokens come as frames without a header; version 1 announces SaslAuthenticate (KIP-152). Never flexible.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.steps import sleep


async def handle(context: AnyContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = context.connection.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if login.handshake(request.mechanism, context.version):
        return SaslHandshakeResponse(mechanisms=login.enabled)
    await sleep(login.delay_ms / 1000, context.services.loop)
    context.close_connection = True
    return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=login.enabled)
