"""Access control lists: the values of one rule, under Kafka's names and numbers.

    AclBinding = a resource pattern (type, name, pattern) + an entry (principal, host, operation, permission)

The numbers are those of the protocol and of `AccessControlEntryRecord`; 0 is unknown, 1 means any in a filter. A binding keeps plain
numbers, because a record of a newer Kafka may hold one that no enumeration here has; `name_of` prints any of them.

Sources: Kafka's `AclBinding`, `ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType`, `AclBindingFilter`; KIP-11, KIP-290.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeVar

__all__ = [
    "CLUSTER_NAME",
    "WILDCARD",
    "WILDCARD_PRINCIPAL",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "PatternType",
    "Permission",
    "ResourceType",
    "known",
    "name_of",
]

WILDCARD = "*"
"""As the name of a LITERAL pattern: every resource; as a host: every address."""
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""The only name that a resource of type CLUSTER has."""


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """MATCH and ANY are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Kafka's `AclPermissionType`."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_Code = TypeVar("_Code", bound=IntEnum)


def known(kind: type[_Code], number: int) -> _Code:
    """Return the member with that number; the one called UNKNOWN if there is none."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def name_of(kind: type[IntEnum], number: int) -> str:
    """Return the name of a number, `UNKNOWN` if it has none."""
    return known(kind, number).name


class AclBinding(NamedTuple):
    """One rule.

    Attributes:
        principal: `Type:name`; the name `*` of type User means everybody.
        host: `*`, an address as Java writes it, or a range in CIDR notation.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __str__(self) -> str:
        """Return the text of Kafka's `StandardAcl`, which its audit log has."""
        return (
            f"StandardAcl[resourceType={name_of(ResourceType, self.resource_type)}, resourceName={self.resource_name}, "
            f"patternType={name_of(PatternType, self.pattern_type)}, principal={self.principal}, host={self.host}, "
            f"operation={name_of(AclOperation, self.operation)}, "
            f"permissionType={name_of(Permission, self.permission_type)}]"
        )


class AclFilter(NamedTuple):
    """Selects rules: None, or ANY, leaves a field open.

    Attributes:
        pattern_type: MATCH selects the rules that apply to the resource of that name: LITERAL of the same name or `*`, PREFIXED of a
            beginning of it.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = Permission.ANY

    def matches(self, acl: AclBinding) -> bool:
        """Return whether the filter selects the rule."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (Permission.ANY, acl.permission_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: AclBinding) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name == WILDCARD
        return self.resource_name.startswith(acl.resource_name)
