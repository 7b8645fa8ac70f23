"""The settings of the authorizer.

    authorizer.class.name                 empty (everybody may do everything), or Kafka's StandardAuthorizer
    super.users                           User:a;User:b, who may do everything
    allow.everyone.if.no.acl.found        whether everybody may use a resource that no access control list mentions; default false

The last two mean nothing without the first, and then stop the start: their owner believes that this node is protected.

Source: Kafka's `StandardAuthorizer.configure`; KIP-801.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.config_schema import ConfigError
from barnabas.metadata.security_settings import AUTHORIZER_SETTINGS
from barnabas.security.authorizer import StandardAuthorizer, parse_super_users
from barnabas.words.printable import printable

__all__ = ["STANDARD_AUTHORIZER", "authorizer_of", "of_authorizer"]

CLASS_NAME = "authorizer.class.name"
SUPER_USERS = "super.users"
IF_NO_ACL = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _is_authorized(given: Mapping[str, str]) -> bool:
    """Return whether these settings ask for an authorizer that this node has.

    Raises:
        ConfigError: they ask for another one.
    """
    name = given.get(CLASS_NAME, "").strip()
    if name and name != STANDARD_AUTHORIZER:
        raise ConfigError(
            f"{CLASS_NAME}={printable(name)}: this node has only {STANDARD_AUTHORIZER}. Set that, or remove the setting "
            "to start without protection"
        )
    return bool(name)


def authorizer_of(given: Mapping[str, str]) -> StandardAuthorizer | None:
    """Return the authorizer of a node, with no access control list yet; None if everybody may do everything.

    Raises:
        ConfigError: a setting is not valid.
    """
    if not _is_authorized(given):
        return None
    text = given.get(IF_NO_ACL, "").strip().lower()
    if text not in ("", "true", "false"):
        raise ConfigError(f"{IF_NO_ACL}={printable(given[IF_NO_ACL])}: expected true or false")
    try:
        return StandardAuthorizer(parse_super_users(given.get(SUPER_USERS, "")), text == "true")
    except ValueError as error:
        raise ConfigError(f"{SUPER_USERS}: {printable(str(error))}") from None


def of_authorizer(given: Mapping[str, str]) -> frozenset[str]:
    """Return the names among these settings that the authorizer honours.

    Raises:
        ConfigError: a setting is not valid.
    """
    return frozenset() if authorizer_of(given) is None else AUTHORIZER_SETTINGS | {CLASS_NAME}
