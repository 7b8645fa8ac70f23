"""StandardAuthorizer: may this principal, from this host, do this to that resource?

The rules, in the order in which they decide:

    1  a super user may do everything, even while the ACLs are not known yet
    2  before the first `replace` no other principal gets an answer: `AuthorizerNotReady`
    3  of the ACLs whose pattern matches the resource, those count that name the principal or `User:*`, and the host;
       one DENY of the operation, or of ALL, denies
    4  one ALLOW of the operation, of ALL, or of an operation that implies it, allows
    5  if no ACL of anybody matches the resource, `allow.everyone.if.no.acl.found` decides; otherwise the answer is no

- READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS: for ALLOW only.
- Whether a principal logged in by a delegation token does not count.
- A question looks up the exact name, `*`, and one beginning of the name for each length that a PREFIXED ACL has: its cost does not grow
  with the number of ACLs.
- The LITERAL ACL `*` does not match a longer name that begins with `*`. No topic has such a name, a group may. Kafka does the same.
- Of several ACLs that decide alike, the one of Kafka's audit line is named: the first DENY, or the last ALLOW, in the order literal name,
  prefixes from the longest to the shortest, `*`; then operation, principal, host.
- A question from another thread sees the ACLs as they were before or after each change: tuples are replaced, never changed.

Sources: Kafka's `StandardAuthorizerData`, `Authorizer.authorizeByResourceType`; KIP-11, KIP-290, KIP-801; KIP-679 for questions by type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.security.acls import WILDCARD, WILDCARD_PRINCIPAL, AclBinding, AclOperation, PatternType, Permission
from barnabas.security.hosts import AddressRange, parse_range
from barnabas.security.principal import Principal

__all__ = ["AuthorizerNotReady", "Decision", "StandardAuthorizer", "parse_super_users"]

_IMPLIED = {
    AclOperation.READ: AclOperation.DESCRIBE,
    AclOperation.WRITE: AclOperation.DESCRIBE,
    AclOperation.DELETE: AclOperation.DESCRIBE,
    AclOperation.ALTER: AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
_EVERY_OPERATION = -1
# Any name would do: `authorize_by_resource_type` asks for a resource that no ACL names, to learn what super users and `*` decide.
_PROBE = "hardcode"


class AuthorizerNotReady(Exception):
    """The ACLs are not loaded yet, and the principal is no super user. On the wire it is UNKNOWN_SERVER_ERROR, as in Kafka."""


class Decision(NamedTuple):
    """An answer and its reason.

    Attributes:
        acl: the ACL that decides; None if a super user asks, or if no ACL does.
    """

    is_allowed: bool
    acl: AclBinding | None = None
    is_super_user: bool = False

    @property
    def rule(self) -> str:
        """The reason as Kafka's audit log has it: `SuperUser`, `DefaultAllow`, `DefaultDeny` or `MatchingAcl(acl=…)`."""
        if self.acl is not None:
            return f"MatchingAcl(acl={self.acl})"
        if self.is_super_user:
            return "SuperUser"
        return "DefaultAllow" if self.is_allowed else "DefaultDeny"


_SUPER_USER = Decision(True, is_super_user=True)
_DENIED = Decision(False)
_ALLOWED = Decision(True)


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of `super.users`, `User:a;User:b`.

    Raises:
        ValueError: a part is no principal.
    """
    users = [part.strip() for part in text.split(";") if part.strip()]
    for user in users:
        if ":" not in user:
            raise ValueError(f"expected a string in format principalType:principalName but got {user}")
    return frozenset(users)


class _Rule:
    """One ACL, made ready for questions; `bits` has bit n for operation n."""

    __slots__ = ("acl", "bits", "decision", "denies", "key", "range", "takes_any_host")

    def __init__(self, acl: AclBinding) -> None:
        self.acl = acl
        self.key = (acl.operation, acl.principal, acl.host, acl.permission_type)
        self.denies = acl.permission_type != Permission.ALLOW
        self.bits = _EVERY_OPERATION if acl.operation == AclOperation.ALL else 1 << acl.operation
        if not self.denies and acl.operation in _IMPLIED:
            self.bits |= 1 << _IMPLIED[AclOperation(acl.operation)]
        self.takes_any_host = acl.host == WILDCARD
        self.range = _range_of(acl.host)
        self.decision = Decision(not self.denies, acl)

    def takes(self, host: str) -> bool:
        return self.takes_any_host or self.acl.host == host or (self.range is not None and self.range.holds(host))

    def __repr__(self) -> str:
        return f"<_Rule {self.acl}>"


def _range_of(host: str) -> AddressRange | None:
    if "/" not in host:
        return None
    try:
        return parse_range(host)
    except ValueError:
        return None


# Principal → the rules that name it, in Kafka's order.
_Bucket = dict[str, tuple[_Rule, ...]]


class _Section:
    """The rules of one resource type."""

    __slots__ = ("lengths", "literals", "owners", "prefixes")

    def __init__(self) -> None:
        self.literals: dict[str, _Bucket] = {}
        self.prefixes: dict[str, _Bucket] = {}
        # The lengths of the prefixes, the longest first.
        self.lengths: tuple[int, ...] = ()
        # Every rule of a principal, for questions by type.
        self.owners: _Bucket = {}

    def add(self, rules: Iterable[_Rule]) -> None:
        by_bucket: dict[tuple[bool, str, str], list[_Rule]] = {}
        by_owner: dict[str, list[_Rule]] = {}
        for rule in rules:
            acl = rule.acl
            is_literal = acl.pattern_type == PatternType.LITERAL
            by_bucket.setdefault((is_literal, acl.resource_name, acl.principal), []).append(rule)
            by_owner.setdefault(acl.principal, []).append(rule)
        for (is_literal, name, principal), more in by_bucket.items():
            bucket = (self.literals if is_literal else self.prefixes).setdefault(name, {})
            bucket[principal] = tuple(sorted((*bucket.get(principal, ()), *more), key=_key))
        for principal, more in by_owner.items():
            self.owners[principal] = (*self.owners.get(principal, ()), *more)
        self._measure()

    def remove(self, rule: _Rule) -> None:
        acl = rule.acl
        buckets = self.literals if acl.pattern_type == PatternType.LITERAL else self.prefixes
        bucket = buckets[acl.resource_name]
        _take(bucket, acl.principal, rule)
        if not bucket:
            del buckets[acl.resource_name]
        _take(self.owners, acl.principal, rule)
        self._measure()

    def _measure(self) -> None:
        if len(self.prefixes) > 0 or self.lengths:
            self.lengths = tuple(sorted({len(name) for name in self.prefixes}, reverse=True))

    def buckets(self, name: str) -> Iterator[_Bucket]:
        """Yield the rules of the patterns that match the name, in the order in which Kafka looks at them."""
        if name in self.literals:
            yield self.literals[name]
        size = len(name)
        for length in self.lengths:
            if length <= size:
                bucket = self.prefixes.get(name[:length])
                if bucket is not None:
                    yield bucket
        if WILDCARD in self.literals and name[:1] != WILDCARD:
            yield self.literals[WILDCARD]


def _key(rule: _Rule) -> tuple[int, str, str, int]:
    return rule.key


def _take(bucket: _Bucket, principal: str, rule: _Rule) -> None:
    rest = tuple(other for other in bucket[principal] if other is not rule)
    if rest:
        bucket[principal] = rest
    else:
        del bucket[principal]


class StandardAuthorizer:
    """The ACLs of a cluster, and the decisions that follow from them.

    Args:
        super_users: principals, `Type:name`, that may do everything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`.

    Attributes:
        version: changes with the ACLs; a decision that somebody keeps holds as long as it does not.
        is_ready: the ACLs are loaded: `replace` was called.
    """

    def __init__(self, super_users: Collection[str] = (), allow_if_no_acl: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.version = 0
        self.is_ready = False
        self._no_acl = _ALLOWED if allow_if_no_acl else _DENIED
        self._rules: dict[bytes, _Rule] = {}
        self._sections: dict[int, _Section] = {}

    def __repr__(self) -> str:
        return f"<StandardAuthorizer acls={len(self._rules)} version={self.version} ready={self.is_ready}>"

    def __len__(self) -> int:
        """Return the number of ACLs."""
        return len(self._rules)

    def replace(self, acls: Mapping[bytes, AclBinding]) -> None:
        """Forget all ACLs and take these, by their ids; from the first call on everybody gets an answer."""
        rules = {acl_id: _Rule(acl) for acl_id, acl in acls.items()}
        by_type: dict[int, list[_Rule]] = {}
        for rule in rules.values():
            by_type.setdefault(rule.acl.resource_type, []).append(rule)
        sections = {resource_type: _Section() for resource_type in by_type}
        for resource_type, more in by_type.items():
            sections[resource_type].add(more)
        self._rules, self._sections = rules, sections
        self.is_ready = True
        self.version += 1

    def add(self, acl_id: bytes, acl: AclBinding) -> None:
        """Add an ACL, or replace the one with that id."""
        if acl_id in self._rules:
            self.remove(acl_id)
        rule = self._rules[acl_id] = _Rule(acl)
        self._sections.setdefault(acl.resource_type, _Section()).add([rule])
        self.version += 1

    def remove(self, acl_id: bytes) -> None:
        """Remove the ACL with that id, which must be there."""
        rule = self._rules.pop(acl_id)
        self._sections[rule.acl.resource_type].remove(rule)
        self.version += 1

    def acls(self) -> Iterator[AclBinding]:
        """Yield every ACL, in no order."""
        return (rule.acl for rule in self._rules.values())

    def is_allowed(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Return whether the principal may.

        Args:
            host: the client's address, as Java writes it (`hosts.java_address`).
            operation, resource_type: of `AclOperation` and `ResourceType`.

        Raises:
            AuthorizerNotReady: the ACLs are not loaded yet.
        """
        return self.explain(principal, host, operation, resource_type, name).is_allowed

    def explain(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """Return the decision of `is_allowed` with its reason."""
        user = f"{principal.type}:{principal.name}"
        if user in self.super_users:
            return _SUPER_USER
        if not self.is_ready:
            raise AuthorizerNotReady("the access control lists are not loaded yet")
        section = self._sections.get(resource_type)
        allowed: _Rule | None = None
        has_acl = False
        for bucket in section.buckets(name) if section is not None else ():
            has_acl = True
            denying, allowing = _first_and_last(bucket, user, host, operation)
            if denying is not None:
                return denying.decision
            allowed = allowing or allowed
        if allowed is not None:
            return allowed.decision
        return _DENIED if has_acl else self._no_acl

    def is_allowed_by_type(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Return whether the principal may do it to at least one resource of the type, which need not exist.

        Implied operations do not count here, but for the wildcard.
        """
        if self.is_allowed(principal, host, operation, resource_type, _PROBE):
            return True
        section = self._sections.get(resource_type)
        if section is None:
            return False
        user = f"{principal.type}:{principal.name}"
        rules = (
            *section.owners.get(user, ()),
            *(section.owners.get(WILDCARD_PRINCIPAL, ()) if user != WILDCARD_PRINCIPAL else ()),
        )
        acls = [rule.acl for rule in rules if rule.acl.operation in (operation, AclOperation.ALL) and rule.takes(host)]
        return _allows_some(acls)


def _first_and_last(bucket: _Bucket, user: str, host: str, operation: int) -> tuple[_Rule | None, _Rule | None]:
    """Return the first rule of a bucket that denies, and the last one that allows."""
    denying: _Rule | None = None
    allowing: _Rule | None = None
    for owner in (user, WILDCARD_PRINCIPAL):
        for rule in bucket.get(owner, ()):
            if rule.bits >> operation & 1 and rule.takes(host):
                if not rule.denies:
                    if allowing is None or rule.key > allowing.key:
                        allowing = rule
                elif denying is None or rule.key < denying.key:
                    denying = rule
    return denying, allowing


def _allows_some(acls: list[AclBinding]) -> bool:
    """Return whether these ACLs, which all concern the question, allow a resource that none of them denies."""
    denied = _names(acls, Permission.DENY, PatternType.LITERAL)
    if WILDCARD in denied:
        return False
    allowed = _names(acls, Permission.ALLOW, PatternType.LITERAL)
    if WILDCARD in allowed:
        return True
    prefixes = _names(acls, Permission.DENY, PatternType.PREFIXED)
    candidates = (allowed - denied) | _names(acls, Permission.ALLOW, PatternType.PREFIXED)
    return any(not _has_prefix(name, prefixes) for name in candidates)


def _names(acls: list[AclBinding], permission: Permission, pattern: PatternType) -> set[str]:
    return {acl.resource_name for acl in acls if acl.permission_type == permission and acl.pattern_type == pattern}


def _has_prefix(name: str, prefixes: set[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))
