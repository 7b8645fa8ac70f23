"""Who sends a request: the type and the name of a principal, `User:alice`.

Source: Kafka's `KafkaPrincipal`. Two principals are equal by type and name: whether one logged in by a delegation token does not count
where access control lists are asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ANONYMOUS", "USER", "Principal", "parse_principal", "principal_of_record"]

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal.

    Attributes:
        by_token: it logged in by a delegation token (KIP-48), so it may not ask for another one.
    """

    type: str
    name: str
    by_token: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Return the principal in a text such as `User:alice`.

    Raises:
        ValueError: there is no `:`, or nothing in front of it or after it.
    """
    kind, found, name = text.strip().partition(":")
    if not found or not kind or not name:
        raise ValueError("expected a string in format principalType:principalName")
    return Principal(kind, name)


def principal_of_record(text: str) -> Principal:
    """Return the principal that a record of the metadata names; either part may be empty, as a client has written it."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)
