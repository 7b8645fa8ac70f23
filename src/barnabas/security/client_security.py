"""How a client secures its connections, from the settings of Kafka's Java client.

    security.protocol   TLS   login
    PLAINTEXT           -     -         `client_security` returns None
    SSL                 x     -         `ssl.*`: mutual TLS with a key store
    SASL_PLAINTEXT      -     x         `sasl.mechanism`, `sasl.jaas.config`, …
    SASL_SSL            x     x

The value is built once, before anything is dialled, so a setting that cannot be used is an error in the beginning. Every connection of a
client shares it. A node's stores are renewed while it runs, so each connection asks for the context of that moment. The value is pickled by
its settings: who unpickles it reads the key stores again, at their place. `repr` shows only the protocol and the mechanism.

Limits: GSSAPI, which is what no `sasl.mechanism` means, is an error: it needs a library that PyPI does not have as a wheel.
Source: Kafka's `SecurityProtocol`, `ChannelBuilders`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.security.sasl.mechanism import ClientMechanism
    from barnabas.security.token_source import TokenRequest

__all__ = ["MECHANISM", "PROTOCOL", "ClientSecurity", "client_security"]

PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OURS = ("security.", "ssl.", "sasl.")


@dataclass(frozen=True)
class ClientSecurity:
    """How a client secures its connections.

    Attributes:
        protocol: SSL, SASL_PLAINTEXT or SASL_SSL.
        mechanism_name: the SASL mechanism; empty without a login.
        contexts: returns what makes the TLS of a new connection; None without TLS.
        mechanism: makes a new machine for each login, for a broker's host; None without a login.
        settings: what the value was built from.
        fetch: asks a token server.
    """

    protocol: str
    mechanism_name: str = ""
    contexts: Callable[[], SSLContext] | None = field(default=None, repr=False, compare=False)
    mechanism: Callable[[str], ClientMechanism] | None = field(default=None, repr=False, compare=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    fetch: Callable[[TokenRequest], bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def context(self) -> SSLContext | None:
        """The context of a new connection; None without TLS."""
        return None if self.contexts is None else self.contexts()

    @property
    def has_key(self) -> bool:
        """Whether the client has a key of its own, for brokers that ask for its certificate."""
        return any(name in dict(self.settings) for name in ("ssl.keystore.location", "ssl.keystore.key"))

    def __reduce__(self) -> tuple[Any, ...]:
        assert self.settings, "a value without settings cannot be built again"
        return client_security, (dict(self.settings), self.fetch)


def client_security(
    settings: Mapping[str, str],
    fetch: Callable[[TokenRequest], bytes] | None = None,
    *,
    contexts: Callable[[], SSLContext] | None = None,
) -> ClientSecurity | None:
    """Return how a client with these settings secures its connections; None for PLAINTEXT.

    Args:
        settings: the names of the Java client; others are ignored.
        fetch: asks a token server for OAUTHBEARER (`client/token_fetch`); None: tokens come from files only.
        contexts: returns the context of the moment, of a caller that renews its stores; None: the stores are read here, once.

    Raises:
        SecuritySettingError: one cannot be used.
    """
    protocol = settings.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise SecuritySettingError(PROTOCOL, f"{printable(protocol)} is not one of {', '.join(_PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return None
    own = {name: value for name, value in settings.items() if name.startswith(_OURS)}
    mechanism, name = None, ""
    if protocol.endswith("SSL") and contexts is None:
        # A client without TLS does not import `ssl`, which takes 20 ms.
        from barnabas.security.tls_settings import client_context

        contexts = partial(_same, client_context(own))
    if protocol.startswith("SASL"):
        from barnabas.security.client_login import client_mechanism

        name = own.get(MECHANISM, "GSSAPI").strip()
        mechanism = client_mechanism(own, name, fetch=fetch)
    return ClientSecurity(protocol, name, contexts, mechanism, tuple(sorted(own.items())), fetch)


def _same(context: SSLContext) -> SSLContext:
    return context
