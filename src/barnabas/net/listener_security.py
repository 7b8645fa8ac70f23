"""The security of one listener: its TLS, its mechanisms of SASL, and the names that certificates stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.security.principal import ANONYMOUS, USER, Principal

if TYPE_CHECKING:
    from barnabas.net.refreshing_keys import RefreshingKeys
    from barnabas.security.server_login import ServerLogin
    from barnabas.security.tls_layer import TlsLayer

__all__ = ["MAX_RECEIVE_BYTES", "ListenerSecurity"]

MAX_RECEIVE_BYTES = 524288
"""The default of `sasl.server.max.receive.size`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """How the clients of a listener prove who they are.

    Attributes:
        protocol: SSL, SASL_PLAINTEXT or SASL_SSL.
        layer: makes the TLS of a new connection, with the context of that moment; None without TLS.
        login: makes the login of a new connection; None without SASL.
        name_of: returns the principal's name for a certificate in DER; raises ValueError if no rule maps it.
        max_receive_bytes: the largest frame before the login.
        failure_delay_ms: how long a failed login waits for its answer and its end.
        keys: those of OAUTHBEARER, which the listener reads before it serves; None without signed tokens.
    """

    protocol: str
    layer: Callable[[], TlsLayer] | None = None
    login: Callable[[], ServerLogin] | None = None
    name_of: Callable[[bytes], str] | None = None
    max_receive_bytes: int = MAX_RECEIVE_BYTES
    failure_delay_ms: int = 100
    keys: RefreshingKeys | None = None

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return who has shown a certificate; ANONYMOUS without a certificate.

        Raises:
            ValueError: no rule of `ssl.principal.mapping.rules` maps its name.
        """
        if certificate is None or self.name_of is None:
            return ANONYMOUS
        return Principal(USER, self.name_of(certificate))
