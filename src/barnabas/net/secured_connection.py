"""A connection of a listener with TLS or SASL: it serves requests only after its client has logged in.

    admitted ─► PendingLogins ─► TLS handshake (`tls_transport`) ─► SASL (`security.server_login`, if the listener has it) ─► served

- Before the login frames are at most `sasl.server.max.receive.size` long, so that a stranger has no more memory than that.
- ApiVersions, SaslHandshake and SaslAuthenticate pass through the dispatcher as other requests do; raw tokens (SaslHandshake version 0) do
  not, because they have no header.
- The answer to a failed login waits for `connection.failed.authentication.delay.ms`, and then the connection closes.
- Each failed login is a line of audit, a few a minute for each address. It is written before the delay, because a client that does not
  wait for the answer has failed too. A client whose TLS handshake fails has failed to log in where the listener asks for certificates.
- Each request looks at the end of the login (`connections.max.reauth.ms`); a listener without SASL has none.

Source: Kafka's `SaslServerAuthenticator`, `KafkaChannel`, `Selector.maybeDelayCloseOnAuthenticationFailure`.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable

from barnabas.api.authorization.audit import AUDIT
from barnabas.api.serving.dispatch import Dispatcher, RefusedRequest
from barnabas.net.connection import Acceptor, Connection
from barnabas.net.listener_security import ListenerSecurity
from barnabas.net.pending_logins import PendingLogins
from barnabas.net.tls_transport import TlsTransport
from barnabas.protocol.errors import FrameTooLarge
from barnabas.protocol.framing import READ_BYTES, FrameBuffer
from barnabas.security.hosts import java_address
from barnabas.security.server_login import ServerLogin, TokenRejected
from barnabas.words.printable import on_one_line

__all__ = ["SecuredConnection", "secured_connections"]

FAILED_LOGINS_MAX = 10
"""Lines about failed logins of one address that are written in a minute, before they are counted."""

_LINE_CHARACTERS = 1000
_SIZE = struct.Struct(">i")


def secured_connections(listener: Acceptor, security: ListenerSecurity) -> Callable[[], asyncio.BaseProtocol]:
    """Return a function that makes the protocol of each socket that a listener accepts."""
    logins, layer, loop = PendingLogins(listener.loop), security.layer, listener.loop
    if layer is None:
        return lambda: SecuredConnection(listener, security, logins)
    ciphertext = memoryview(bytearray(READ_BYTES))
    return lambda: TlsTransport(SecuredConnection(listener, security, logins), layer, ciphertext, loop)


class SecuredConnection(Connection):
    """A connection whose client has to log in.

    Args:
        security: of the listener.
        logins: of the listener.
    """

    __slots__ = ("_is_audited", "_is_pending", "_later", "_login", "_logins", "_security", "_serves")

    def __init__(self, listener: Acceptor, security: ListenerSecurity, logins: PendingLogins) -> None:
        super().__init__(listener)
        self._security = security
        self._logins = logins
        self._login: ServerLogin | None = None if security.login is None else security.login()
        self._is_pending = True
        self._is_audited = False
        self._later: asyncio.TimerHandle | None = None
        self._serves: Dispatcher | None = None

    @property
    def peer_host(self) -> str:
        return self.info.peer_host

    @property
    def is_starting(self) -> bool:
        """Whether this connection is not admitted yet, or waits for its turn to log in."""
        return self._is_starting

    # Calls of the loop, or of the layer of TLS.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.info.login = self._login

    def connection_lost(self, exc: Exception | None) -> None:
        self._logins.leave(self)
        self._audit_failure()
        if self._later is not None:
            self._later.cancel()
        super().connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frames is None and self._is_pending:
            self._frames = FrameBuffer(self._security.max_receive_bytes)
        return super().get_buffer(sizehint)

    def established(self, certificate: bytes | None) -> None:
        """The handshake of TLS is over.

        Args:
            certificate: of the client, as DER; None if it has shown none.
        """
        if self._login is not None:
            return
        try:
            self.info.principal = self._security.principal_of(certificate)
        except ValueError as error:
            self.refuse_later(f"the certificate's name is mapped to no principal: {error}", logging.WARNING)
            return
        self._logged_in()

    # Requests.

    def serve(self, dispatcher: Dispatcher) -> None:
        """Let the client log in when its turn comes: the connection is admitted and the broker is ready."""
        self._serves = dispatcher
        self._logins.arrive(self)

    def begin_login(self) -> None:
        assert self._serves is not None, "a login begins after the broker is ready"
        super().serve(self._serves)

    def _handle(self, frame: memoryview) -> None:
        login = self._login
        if login is None:
            super()._handle(frame)
            return
        if login.expects_raw_token:
            self._take_raw_token(login, bytes(frame))
            return
        if why := login.objection(int.from_bytes(frame[:2], "big")):
            raise RefusedRequest(why)
        super()._handle(frame)
        self._audit_failure()
        if self._is_pending and login.is_complete:
            self._logged_in()

    def _take_raw_token(self, login: ServerLogin, token: bytes) -> None:
        try:
            answer = login.respond(token)
        except TokenRejected:
            self._end_later()
            return
        self._transport.write(_SIZE.pack(len(answer)) + answer)
        if login.is_complete:
            self.info.principal = login.principal or self.info.principal
            self._logged_in()

    def _logged_in(self) -> None:
        self._is_pending = False
        self._logins.leave(self)
        if self._frames is not None:
            self._frames.max_frame_bytes = self._listener.max_frame_bytes

    # The end.

    def refuse_later(self, reason: str, level: int) -> None:
        """Close after `connection.failed.authentication.delay.ms`, and read nothing until then."""
        self._log(level, reason)
        if self._is_pending and self._security.name_of is not None:
            self._audit(f"failed authentication by SSL: {reason}")
        self._end_later()

    def _end_later(self) -> None:
        self._audit_failure()
        self._end()
        self._later = self._listener.loop.call_later(self._security.failure_delay_ms / 1000, self._transport.close)

    def _refuse_frame(self, error: FrameTooLarge) -> None:
        if self._is_pending and error.announced <= self._listener.max_frame_bytes:
            setting = "sasl.server.max.receive.size"
            self._refuse(f"malformed frame: {error} before the login ({setting})")
            return
        super()._refuse_frame(error)

    # The log and the audit.

    def _log(self, level: int, reason: str) -> None:
        if self._login is not None and self._login.why_failed:
            # The line of audit says it.
            self._audit_failure()
        else:
            super()._log(level, reason)

    def _audit_failure(self) -> None:
        """Write a line about a login by SASL that has failed, once."""
        if self._login is not None and self._login.why_failed:
            self._audit(self._login.why_failed)

    def _audit(self, why: str) -> None:
        if self._is_audited:
            return
        self._is_audited = True
        host = self.info.peer_host
        line = f"Failed login from host = {java_address(host)} on listener = {self.info.listener_name}: {why}"
        about = f"failed logins from {host}"
        self._listener.lines.log(
            AUDIT, logging.INFO, about, on_one_line(line[:_LINE_CHARACTERS]), at_most=FAILED_LOGINS_MAX
        )
