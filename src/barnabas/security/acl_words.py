"""Access control lists in the words of `barnabas acl create` and `kafka-acls.sh --add`.

    --allow-principal User:alice --operation read --operation describe --topic orders
    --deny-principal User:* --operation write --topic audit- --prefixed
    --allow-principal User:ops --operation all --cluster --host 10.0.0.7

A line stands for one ACL for each principal and operation.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from barnabas.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.hosts import java_address, parse_range
from barnabas.security.principal import parse_principal
from barnabas.words.nearest import did_you_mean

__all__ = ["NAMED_TYPES", "OPERATIONS", "acl_bindings", "parse_acl"]

NAMED_TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
"""The options that name a resource, without their dashes."""

OPERATIONS: dict[str, AclOperation] = {each.name.lower().replace("_", "-"): each for each in [*AclOperation][2:]}
"""The operations, as the option `--operation` names them."""

_PERMISSIONS = {"--allow-principal": Permission.ALLOW, "--deny-principal": Permission.DENY}
_WITH_VALUE = (*_PERMISSIONS, "--operation", "--host", *(f"--{name}" for name in NAMED_TYPES))
_FLAGS = ("--cluster", "--prefixed")
_EXAMPLE = "--allow-principal User:alice --operation read --topic orders"


def acl_bindings(
    resource: tuple[ResourceType, str],
    principals: Iterable[tuple[str, Permission]],
    operations: Sequence[AclOperation],
    *,
    host: str = WILDCARD,
    prefixed: bool = False,
) -> list[AclBinding]:
    """Return an ACL for each principal and operation.

    Args:
        host: as `AclBinding.host`; an IPv6 address in any form.
    """
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    # `::1` would match no client: brokers compare with addresses as Java writes them.
    return [
        AclBinding(*resource, pattern, principal, java_address(host), operation, permission)
        for principal, permission in principals
        for operation in operations
    ]


def parse_acl(text: str) -> list[AclBinding]:
    """Return the ACLs of a line.

    Raises:
        ValueError: an option is missing, unknown or not valid; the text says which.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError("a quotation mark is missing") from None
    resources: list[tuple[ResourceType, str]] = []
    principals: list[tuple[str, Permission]] = []
    operations: list[AclOperation] = []
    host, prefixed = WILDCARD, False
    for option, value in _options(words):
        if option in _PERMISSIONS:
            principals.append((_principal(value), _PERMISSIONS[option]))
        elif option == "--operation":
            operations.append(_operation(value))
        elif option == "--host":
            host = value
            if "/" in host:
                parse_range(host)
        elif option == "--prefixed":
            prefixed = True
        elif option == "--cluster":
            resources.append((ResourceType.CLUSTER, CLUSTER_NAME))
        else:
            resources.append((NAMED_TYPES[option.removeprefix("--")], value))
    if len(resources) != 1:
        raise ValueError("name one resource: --topic, --group, --cluster or another one")
    if not principals:
        raise ValueError("name who may or may not: --allow-principal or --deny-principal")
    if not operations:
        raise ValueError("name what: --operation read, write, all, …")
    return acl_bindings(resources[0], principals, operations, host=host, prefixed=prefixed)


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value, which is empty for a flag."""
    left = iter(words)
    for word in left:
        option, has_value, value = word.partition("=")
        if option in _FLAGS and not has_value:
            yield option, ""
        elif option in _WITH_VALUE:
            found = value if has_value else next(left, "")
            if not found:
                raise ValueError(f"{option} has no value")
            yield option, found
        elif word.startswith("--"):
            raise ValueError(f"there is no option {option}{did_you_mean(option, (*_WITH_VALUE, *_FLAGS))}")
        else:
            raise ValueError(f"'{word}' is not an option; write {_EXAMPLE}")


def _principal(text: str) -> str:
    try:
        return str(parse_principal(text))
    except ValueError:
        raise ValueError(f"{text} is not a principal: write Type:name, such as User:alice") from None


def _operation(text: str) -> AclOperation:
    found = OPERATIONS.get(text.lower().replace("_", "-"))
    if found is None:
        raise ValueError(f"there is no operation {text}{did_you_mean(text, OPERATIONS)}")
    return found
