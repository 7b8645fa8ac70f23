"""The two sides of a login: what a mechanism of SASL is to the code that carries its bytes.

    client                                   server
    begin()            -- bytes -->          respond(bytes)
    respond(bytes)     <- bytes ---
    ... until the client's machine returns None, and the server's machine is finished

A machine serves one login and keeps no socket, so it is used on the loop and in blocking clients alike.

- Kafka sends an answer to each token, an empty one too. So the client's machine always has the last word.
- A server's text for a failed login does not depend on whether the user exists.

Sources: RFC 4422; KIP-43, KIP-152; Kafka's `SaslServerAuthenticator`, `SaslClientAuthenticator`.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.security.principal import Principal

__all__ = ["ClientMechanism", "LoginFailed", "ServerMechanism", "invalid_credentials"]


class LoginFailed(Exception):
    """A login has failed: the connection is of no more use.

    On the server's side it becomes SASL_AUTHENTICATION_FAILED with `text`.

    Attributes:
        text: the line for the other side. It has no secret, and it does not tell whether the user exists.
        why: the line that the server's operator may read in the node's log: the user, not the password. Equal to `text` if there is
            no more to say.
    """

    def __init__(self, text: str, why: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.why = text if why is None else why


class ClientMechanism(Protocol):
    """The client's side of one login."""

    @property
    def name(self) -> str:
        """The mechanism, as SaslHandshake spells it."""

    def begin(self) -> bytes:
        """Return the first token."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next token; None if the login is complete.

        SCRAM derives a key from the password here: about 2 ms for 4096 iterations, more if the server asks for more.

        Raises:
            LoginFailed: the server's token is not a valid one, or the server does not know the password either.
        """


class ServerMechanism(Protocol):
    """The server's side of one login."""

    @property
    def name(self) -> str:
        """The mechanism, as SaslHandshake spells it."""

    def respond(self, data: bytes) -> bytes:
        """Return the answer to a token, empty if there is nothing to say.

        Raises:
            LoginFailed: the connection must be closed after the answer.
        """

    @property
    def is_finished(self) -> bool:
        """True once the client has proved who it is."""

    @property
    def principal(self) -> Principal:
        """The principal; asked only when the login is finished."""

    @property
    def lifetime_ms(self) -> int | None:
        """The end of the token that the client has shown, in epoch milliseconds; None if the login does not end."""


def invalid_credentials(mechanism: str, during: str = "authentication") -> str:
    """Return Kafka's one text for a failed login.

    Args:
        during: `authentication` or `re-authentication`.
    """
    return f"Authentication failed during {during} due to invalid credentials with SASL mechanism {mechanism}"
