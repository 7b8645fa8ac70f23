"""Rules and filters of access control lists."""

from __future__ import annotations

import pytest

from barnabas.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
    known,
    name_of,
)

RULE = AclBinding(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "10.0.0.7", AclOperation.READ, Permission.ALLOW
)
PREFIXED = RULE._replace(resource_name="ord", pattern_type=PatternType.PREFIXED)
EVERY = RULE._replace(resource_name="*")


def test_a_rule_prints_as_in_the_audit_log() -> None:
    assert str(RULE) == (
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, host=10.0.0.7, "
        "operation=READ, permissionType=ALLOW]"
    )


def test_numbers_of_a_newer_kafka_are_unknown() -> None:
    assert known(AclOperation, 99) is AclOperation.UNKNOWN
    assert name_of(ResourceType, 99) == "UNKNOWN"
    assert "operation=UNKNOWN" in str(RULE._replace(operation=99))


def test_an_empty_filter_selects_everything() -> None:
    assert all(AclFilter().matches(acl) for acl in (RULE, PREFIXED, EVERY, RULE._replace(operation=99)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource_type", ResourceType.GROUP),
        ("resource_name", "order"),
        ("pattern_type", PatternType.PREFIXED),
        ("principal", "User:bob"),
        ("host", "*"),
        ("operation", AclOperation.ALL),
        ("permission_type", Permission.DENY),
    ],
)
def test_each_field_of_a_filter_selects(field: str, value: object) -> None:
    exact = AclFilter(*RULE)
    assert exact.matches(RULE)
    assert AclFilter(**{field: getattr(RULE, field)}).matches(RULE)  # type: ignore[arg-type]
    assert not AclFilter(**{field: value}).matches(RULE)  # type: ignore[arg-type]
    assert not exact._replace(**{field: value}).matches(RULE)  # type: ignore[arg-type]


def test_match_selects_the_patterns_that_apply_to_a_name() -> None:
    applies = AclFilter(resource_name="orders", pattern_type=PatternType.MATCH)
    assert [applies.matches(acl) for acl in (RULE, PREFIXED, EVERY)] == [True, True, True]
    assert not applies.matches(RULE._replace(resource_name="order"))
    assert not applies.matches(PREFIXED._replace(resource_name="orders2"))
    assert not applies.matches(PREFIXED._replace(resource_name="*"))


def test_any_compares_the_name_alone() -> None:
    named = AclFilter(resource_name="orders")
    assert [named.matches(acl) for acl in (RULE, PREFIXED, EVERY)] == [True, False, False]
    assert AclFilter(resource_name="ord").matches(PREFIXED)
