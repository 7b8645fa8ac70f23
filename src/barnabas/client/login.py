"""The login on a connection: which requests the client sends, and what it makes of the answers.

    SaslHandshake v1      mechanism          ->
                                             <-  error, the mechanisms that the listener offers
    SaslAuthenticate      bytes of the mechanism ->                                      as often as the mechanism needs
                                             <-  error and text, bytes, session_lifetime_ms

`login` is a generator: it yields a request and is sent its response. `BlockingConnection` and `Channel` drive it, in the beginning and
again whenever the session nears its end (KIP-368): on the same connection, while no other request is under way.

A login that the broker rejects is final: the same password gets the same answer, and some servers lock a user out after a few.

Sources: KIP-43, KIP-152, KIP-368; Kafka's `SaslClientAuthenticator`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from barnabas.client.errors import OtherSecurity
from barnabas.client.exchange import Exchange
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.security.client_security import ClientSecurity
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.words.printable import printable

__all__ = ["login", "login_version", "renewed_after_s"]

_RENEWED_AT = 0.85
"""The part of a session's lifetime after which the client logs in again; Kafka's clients do so between 0.85 and 0.95."""


def login(exchange: Exchange, security: ClientSecurity, host: str) -> Generator[Message, Any, int]:
    """Log in; yield each request and take its response.

    Args:
        host: the broker's, as it was dialled.

    Returns:
        How long the session lasts, in ms; 0 if it has no end.

    Raises:
        KafkaError: SASL_AUTHENTICATION_FAILED with the broker's text, UNSUPPORTED_SASL_MECHANISM with the mechanisms it offers.
        OtherSecurity: the listener takes no login.
    """
    assert security.mechanism is not None, security
    _check_takes_logins(exchange, security)
    machine = security.mechanism(host)
    handshake = yield messages.SaslHandshakeRequest(mechanism=machine.name)
    if handshake.error_code:
        raise _rejected_handshake(exchange.address, security, machine.name, handshake)
    try:
        data: bytes | None = machine.begin()
        while data is not None:
            answer = yield messages.SaslAuthenticateRequest(auth_bytes=data)
            if answer.error_code:
                raise KafkaError(answer.error_code, _text(exchange.address, machine.name, answer.error_message))
            data = machine.respond(bytes(answer.auth_bytes))
    except LoginFailed as error:
        text = _text(exchange.address, machine.name, error.text)
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, text) from None
    lifetime_ms: int = answer.session_lifetime_ms
    return lifetime_ms


def login_version(exchange: Exchange, request: Message) -> int:
    """Return the version of a login's request; on a connection that has not asked for the broker's versions the newest."""
    return exchange.version_for(request) if exchange.versions else request.MAX_VERSION


def renewed_after_s(lifetime_ms: int) -> float | None:
    """Return after how many seconds the client logs in again; None if the session has no end."""
    return lifetime_ms * _RENEWED_AT / 1000 if lifetime_ms > 0 else None


def _check_takes_logins(exchange: Exchange, security: ClientSecurity) -> None:
    if exchange.versions and not exchange.supports(messages.SaslHandshakeRequest.API_KEY):
        raise _without_sasl(exchange.address, security)


def _without_sasl(address: str, security: ClientSecurity) -> OtherSecurity:
    wanted = security.protocol.removeprefix("SASL_")
    return OtherSecurity(f"{address} is a listener without SASL: set security.protocol={wanted}")


def _rejected_handshake(
    address: str, security: ClientSecurity, mechanism: str, answer: messages.SaslHandshakeResponse
) -> KafkaError:
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return _without_sasl(address, security)
    if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return KafkaError(answer.error_code, f"the broker {address} rejected the login with {mechanism}")
    offered = ", ".join(printable(each) for each in answer.mechanisms) or "none"
    return KafkaError(
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        f"the broker {address} does not offer sasl.mechanism={mechanism}; it offers {offered}",
    )


def _text(address: str, mechanism: str, words: str | None) -> str:
    return f"login at {address} with {mechanism} failed: {printable(words or 'the broker says no more')}"
