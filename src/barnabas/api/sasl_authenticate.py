"""SaslAuthenticate (API key 36, versions 0-2): one token of a login, and the answer to it.

- The connection's principal changes when the mechanism has finished.
- SASL_AUTHENTICATION_FAILED with a text that does not say whether the user exists. The answer waits for
  `connection.failed.authentication.delay.ms`, and the connection closes.
- ILLEGAL_SASL_STATE on a listener without SASL, in Kafka's words.

Version 1 adds the session lifetime (KIP-368), 2 is flexible.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.security.server_login import TokenRejected
from barnabas.steps import sleep

_AFTER_LOGIN = "SaslAuthenticate request received after successful authentication"


async def handle(context: AnyContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    login = context.connection.login
    if login is None or login.is_complete:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_AFTER_LOGIN)
    try:
        answer = login.respond(bytes(request.auth_bytes))
    except TokenRejected as rejected:
        await sleep(login.delay_ms / 1000, context.services.loop)
        context.close_connection = True
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(rejected), auth_bytes=b""
        )
    response = SaslAuthenticateResponse(auth_bytes=answer)
    if login.is_complete and login.principal is not None:
        context.connection.principal = login.principal
        if context.version >= 1:
            response.session_lifetime_ms = login.session_ms()
    return response
