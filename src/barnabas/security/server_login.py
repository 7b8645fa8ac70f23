"""A client's login on one connection of a listener with SASL: which request may come next, and who logged in.

    HANDSHAKE ── SaslHandshake names an enabled mechanism ──► TOKENS ── the mechanism has finished ──► COMPLETE
        │                                                       │                                        │
        └── another mechanism ──► FAILED ◄── a wrong token ─────┘ ◄── SaslHandshake: the client logs in again ┘

- Before COMPLETE only ApiVersions, SaslHandshake and SaslAuthenticate are served, each in its state. Everything else closes the connection.
- After SaslHandshake version 0 the tokens come raw: frames without a header.
- A login may end (`expires_ms`): by `connections.max.reauth.ms`, or with its token. Then only a new SaslHandshake is served, and any other
  request closes the connection. A new login changes neither the mechanism nor the principal.

Sources: Kafka's `SaslServerAuthenticator`; KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import LoginFailed, ServerMechanism

__all__ = ["ServerLogin", "TokenRejected"]

_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36


class TokenRejected(Exception):
    """The login has failed; the text is for the client and tells no secret, and not whether a user exists."""


class _State(Enum):
    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    COMPLETE = "complete"
    FAILED = "failed"


class ServerLogin:
    """The login of one connection.

    Args:
        mechanisms: the enabled ones, by name; each makes a new exchange, for `authentication` or `re-authentication`.
        now_ms: the wall clock, epoch milliseconds.
        max_reauth_ms: how long a login lasts, by mechanism; 0 for ever.
        delay_ms: how long the answer to a failed login waits (`connection.failed.authentication.delay.ms`).

    Attributes:
        principal: who logged in; None before.
        mechanism: the name of the one in use.
        expires_ms: when the login ends; None if it does not.
        is_raw: whether the tokens come without headers.
    """

    __slots__ = (
        "_exchange",
        "_is_again",
        "_max_reauth_ms",
        "_mechanisms",
        "_now_ms",
        "_state",
        "delay_ms",
        "expires_ms",
        "is_raw",
        "mechanism",
        "principal",
        "why_failed",
    )

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[str], ServerMechanism]],
        *,
        now_ms: Callable[[], int],
        max_reauth_ms: Mapping[str, int],
        delay_ms: int = 0,
    ) -> None:
        self._mechanisms = mechanisms
        self._now_ms = now_ms
        self._max_reauth_ms = max_reauth_ms
        self.delay_ms = delay_ms
        self._state = _State.HANDSHAKE
        self._exchange: ServerMechanism | None = None
        self._is_again = False
        self.principal: Principal | None = None
        self.mechanism = ""
        self.expires_ms: int | None = None
        self.is_raw = False
        self.why_failed = ""

    def __repr__(self) -> str:
        return f"<ServerLogin {self._state.value} mechanism={self.mechanism or None} principal={self.principal}>"

    @property
    def is_complete(self) -> bool:
        """Whether the client has logged in, and does not do so again just now."""
        return self._state is _State.COMPLETE

    @property
    def expects_raw_token(self) -> bool:
        """Whether the next frame is a token without a header."""
        return self.is_raw and self._state is _State.TOKENS

    @property
    def enabled(self) -> list[str]:
        """The names of the enabled mechanisms."""
        return list(self._mechanisms)

    def objection(self, api_key: int) -> str:
        """Return why a request of this API closes the connection now; empty if it may be handled."""
        if self._state is _State.COMPLETE:
            if self.expires_ms is None or api_key == _SASL_HANDSHAKE or self._now_ms() < self.expires_ms:
                return ""
            return f"the login of {self.principal} has ended, and the client did not log in again"
        if self._state is _State.HANDSHAKE and api_key in (_API_VERSIONS, _SASL_HANDSHAKE):
            return ""
        if self._state is _State.TOKENS and api_key == _SASL_AUTHENTICATE:
            return ""
        during = "SASL authentication" if self._state is _State.TOKENS else "SASL handshake"
        return f"an unexpected Kafka request with API key {api_key} during {during}: the client has not logged in"

    def handshake(self, mechanism: str, version: int) -> bool:
        """Choose a mechanism, and return whether it is enabled; if not, the login has failed.

        Args:
            version: of SaslHandshake; after version 0 the tokens come raw.
        """
        assert self._state in (_State.HANDSHAKE, _State.COMPLETE), f"a handshake in state {self._state}"
        make = self._mechanisms.get(mechanism)
        if make is None:
            self._fail(f"the mechanism {mechanism[:40]!r} is not enabled")
            return False
        self._is_again = self._state is _State.COMPLETE
        if self._is_again and mechanism != self.mechanism:
            # As in Kafka, the handshake gets its answer, and the next request closes the connection.
            self._fail(f"a client that logs in again may not change its mechanism from {self.mechanism}")
            return True
        self.mechanism = mechanism
        self.is_raw = version == 0
        self._exchange = make(self._during)
        self._state = _State.TOKENS
        return True

    def respond(self, token: bytes) -> bytes:
        """Return the answer to a token; the login may be complete then.

        Raises:
            TokenRejected: the login has failed.
        """
        exchange = self._exchange
        assert exchange is not None, "a token without a handshake"
        assert self._state is _State.TOKENS, f"a token in state {self._state}"
        try:
            answer = exchange.respond(token)
        except LoginFailed as error:
            self._fail(f"failed {self._during} by {self.mechanism}: {error.why}")
            raise TokenRejected(error.text) from None
        if exchange.is_finished:
            self._complete(exchange)
        return answer

    def session_ms(self) -> int:
        """Return how long the login lasts from now on, 0 for ever, as SaslAuthenticate tells the client."""
        if self._state is not _State.COMPLETE or self.expires_ms is None:
            return 0
        return max(self.expires_ms - self._now_ms(), 0)

    @property
    def _during(self) -> str:
        return "re-authentication" if self._is_again else "authentication"

    def _complete(self, exchange: ServerMechanism) -> None:
        principal = exchange.principal
        if self._is_again and principal != self.principal:
            text = f"Cannot change principals during re-authentication from {self.principal}: {principal}"
            self._fail(text)
            raise TokenRejected(text)
        ends = [] if exchange.lifetime_ms is None else [exchange.lifetime_ms]
        if longest := self._max_reauth_ms.get(self.mechanism, 0):
            ends.append(self._now_ms() + longest)
        self.principal = principal
        self.expires_ms = min(ends, default=None)
        self._exchange = None
        self._state = _State.COMPLETE

    def _fail(self, why: str) -> None:
        self.why_failed = why
        self._exchange = None
        self._state = _State.FAILED
