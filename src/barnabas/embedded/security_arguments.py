"""The arguments `security`, `users` and `acls` of `barnabas.Broker` and `barnabas.Cluster`, checked: each mistake is one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barnabas.config.config import ConfigError
from barnabas.security.acl_words import parse_acl
from barnabas.security.acls import AclBinding
from barnabas.security.dev_settings import SECURED_PROTOCOLS
from barnabas.words.nearest import did_you_mean

__all__ = ["SecurityArguments", "checked_security"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NODE = re.compile(r"node-[0-9]+")
_ACL_EXAMPLE = "--allow-principal User:alice --operation read --topic orders"


@dataclass(frozen=True, slots=True)
class SecurityArguments:
    """The security of a broker or a cluster, as its caller wants it.

    Attributes:
        protocol: SSL, SASL_PLAINTEXT or SASL_SSL.
        users: password by name.
        acls: None if everybody may do everything.
    """

    protocol: str
    users: Mapping[str, str] = field(repr=False)
    acls: tuple[AclBinding, ...] | None = None


def checked_security(
    security: str | None, users: Mapping[str, str] | None, acls: Iterable[str] | None
) -> SecurityArguments | None:
    """Return the arguments; None for PLAINTEXT.

    Raises:
        ConfigError: a value is not valid, or has no meaning without another one.
        TypeError: an argument is of another type.
    """
    if security is not None and not isinstance(security, str):
        raise TypeError(f"security={security!r} is not text: pass one of {', '.join(SECURED_PROTOCOLS)}")
    if security is None or security == "PLAINTEXT":
        if users:
            raise ConfigError('users= need a listener that asks for a login: pass security="SASL_SSL" too')
        if acls is not None:
            raise ConfigError('acls= need a listener that knows its clients: pass security="SASL_SSL" and users= too')
        return None
    if security not in SECURED_PROTOCOLS:
        raise ConfigError(
            f"security={security!r} is not one of {', '.join(SECURED_PROTOCOLS)}{did_you_mean(security, SECURED_PROTOCOLS)}"
        )
    return SecurityArguments(security, _users(users, security), None if acls is None else _acls(acls))


def _users(users: Mapping[str, str] | None, protocol: str) -> dict[str, str]:
    if users is None:
        return {}
    if not isinstance(users, Mapping):
        raise TypeError(f'users= is a {type(users).__name__}: pass a mapping such as {{"alice": "alice-secret"}}')
    for name, password in users.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"users={{{name!r}: …}} is not a user's name here: use at most 64 letters, digits, '.', '_', '@' and '-'"
            )
        # With SSL the certificate is the login: this name is that of a node, a super user.
        if protocol == "SSL" and _NODE.fullmatch(name):
            raise ConfigError(f"users={{{name!r}: …}} is the name in a node's certificate: choose another name")
        if not isinstance(password, str) or not password or "\0" in password:
            raise ConfigError(f"users={{{name!r}: …}} has no password: pass text that is not empty")
    return dict(users)


def _acls(acls: Iterable[str]) -> tuple[AclBinding, ...]:
    if isinstance(acls, str):
        raise TypeError(f'acls= is text: pass a list of texts, such as ["{_ACL_EXAMPLE}"]')
    found: list[AclBinding] = []
    for number, text in enumerate(acls):
        if not isinstance(text, str):
            raise TypeError(f'acls[{number}] is a {type(text).__name__}: pass text, such as "{_ACL_EXAMPLE}"')
        try:
            found += parse_acl(text)
        except ValueError as error:
            raise ConfigError(f"acls[{number}]: {error}") from None
    return tuple(found)
