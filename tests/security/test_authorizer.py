"""Decisions from access control lists: each rule by itself, and random lists against the rules written out plainly.

`tests/conform/test_authorizer` asks Apache Kafka's own class.
"""

from __future__ import annotations

import random

import pytest

from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.authorizer import AuthorizerNotReady, Decision, StandardAuthorizer, parse_super_users
from barnabas.security.principal import Principal

TOPIC = ResourceType.TOPIC
ALICE, BOB, ROOT = Principal("User", "alice"), Principal("User", "bob"), Principal("User", "root")
HOST = "10.0.0.7"


def acl(
    name: str = "orders",
    operation: AclOperation = AclOperation.READ,
    permission: Permission = Permission.ALLOW,
    *,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AclBinding:
    return AclBinding(TOPIC, name, pattern, principal, host, operation, permission)


def authorizer(*acls: AclBinding, allow_if_no_acl: bool = False) -> StandardAuthorizer:
    made = StandardAuthorizer({"User:root"}, allow_if_no_acl)
    made.replace({str(index).encode(): one for index, one in enumerate(acls)})
    return made


def may(
    decides: StandardAuthorizer,
    operation: AclOperation = AclOperation.READ,
    name: str = "orders",
    principal: Principal = ALICE,
    host: str = HOST,
) -> bool:
    return decides.is_allowed(principal, host, operation, TOPIC, name)


def test_super_users_may_do_everything_even_before_the_acls_are_known() -> None:
    made = StandardAuthorizer({"User:root"})
    assert made.explain(ROOT, HOST, AclOperation.ALTER, TOPIC, "orders").rule == "SuperUser"
    with pytest.raises(AuthorizerNotReady):
        may(made)
    made.replace({b"1": acl("*", AclOperation.ALL, Permission.DENY, principal="User:*")})
    assert may(made, principal=ROOT)
    assert not may(made, principal=Principal("Group", "root"))


def test_a_delegation_token_does_not_count() -> None:
    assert may(authorizer(acl()), principal=Principal("User", "alice", by_token=True))


@pytest.mark.parametrize("allow", [False, True])
def test_without_an_acl_of_anybody_the_setting_decides(allow: bool) -> None:
    made = authorizer(acl("other"), acl(principal="User:bob"), allow_if_no_acl=allow)
    assert may(made, name="free") is allow
    # Somebody's rule matches the resource: the setting does not count.
    assert not may(made, name="orders")
    assert made.explain(ALICE, HOST, AclOperation.READ, TOPIC, "free") == Decision(allow)
    assert made.explain(ALICE, HOST, AclOperation.READ, TOPIC, "free").rule == (
        "DefaultAllow" if allow else "DefaultDeny"
    )


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        (acl(), True),
        (acl("*"), True),
        (acl("ord", pattern=PatternType.PREFIXED), True),
        (acl("orders", pattern=PatternType.PREFIXED), True),
        (acl("ord"), False),
        (acl("orders2", pattern=PatternType.PREFIXED), False),
        (acl("*", pattern=PatternType.PREFIXED), False),
        (acl(principal="User:*"), True),
        (acl(principal="User:bob"), False),
        (acl(principal="Group:alice"), False),
        (acl(principal="Group:*"), False),
        (acl(host=HOST), True),
        (acl(host="10.0.0.8"), False),
        (acl(host="10.0.0.0/8"), True),
        (acl(host="10.0.0.8/31"), False),
        (acl(host="no range/8"), False),
        (acl(operation=AclOperation.ALL), True),
        (acl(operation=AclOperation.WRITE), False),
        (acl()._replace(resource_type=ResourceType.GROUP), False),
    ],
)
def test_an_acl_must_match_resource_principal_host_and_operation(rule: AclBinding, allowed: bool) -> None:
    assert may(authorizer(rule)) is allowed
    # A denial matches what an allowance matches.
    denial = rule._replace(permission_type=Permission.DENY)
    assert may(authorizer(acl(), denial)) is not allowed


def test_an_acl_without_a_star_does_not_match_an_address_that_is_spelled_differently() -> None:
    assert not may(authorizer(acl(host="::1")), host="0:0:0:0:0:0:0:1")
    assert may(authorizer(acl(host="0:0:0:0:0:0:0:1")), host="0:0:0:0:0:0:0:1")


@pytest.mark.parametrize("given", [AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_describe_is_implied_for_allowances_only(given: AclOperation) -> None:
    assert may(authorizer(acl(operation=given)), AclOperation.DESCRIBE)
    denied = authorizer(acl(operation=given, permission=Permission.DENY), acl(operation=AclOperation.DESCRIBE))
    assert may(denied, AclOperation.DESCRIBE)
    assert not may(denied, given)


def test_describe_configs_is_implied_by_alter_configs_alone() -> None:
    assert may(authorizer(acl(operation=AclOperation.ALTER_CONFIGS)), AclOperation.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl(operation=AclOperation.ALTER)), AclOperation.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl(operation=AclOperation.DESCRIBE_CONFIGS)), AclOperation.DESCRIBE)


def test_the_star_does_not_match_longer_names_that_begin_with_a_star() -> None:
    made = authorizer(acl("*"))
    assert may(made, name="*")
    assert not may(made, name="*a")


def test_one_denial_outweighs_every_allowance_and_is_named() -> None:
    denial = acl("o", AclOperation.ALL, Permission.DENY, pattern=PatternType.PREFIXED, principal="User:*")
    found = authorizer(acl(), acl("*"), denial).explain(ALICE, HOST, AclOperation.READ, TOPIC, "orders")
    assert found == Decision(False, denial)
    assert found.rule == f"MatchingAcl(acl={denial})"


def test_versions_change_with_the_acls() -> None:
    made = authorizer()
    versions = [made.version]
    made.add(b"a", acl())
    versions.append(made.version)
    assert may(made)
    assert [*made.acls()] == [acl()]
    made.add(b"a", acl("other"))
    versions.append(made.version)
    assert not may(made)
    assert may(made, name="other")
    made.add(b"b", acl("oth", permission=Permission.DENY, pattern=PatternType.PREFIXED))
    assert not may(made, name="other")
    made.remove(b"b")
    made.remove(b"a")
    versions.append(made.version)
    assert not may(made, name="other")
    assert len(set(versions)) == len(versions)
    assert repr(made) == "<StandardAuthorizer acls=0 version=7 ready=True>"
    assert len(made) == 0


def by_type(*acls: AclBinding, principal: Principal = ALICE) -> bool:
    return authorizer(*acls).is_allowed_by_type(principal, HOST, AclOperation.WRITE, TOPIC)


WRITE, DENY, PREFIXED = AclOperation.WRITE, Permission.DENY, PatternType.PREFIXED


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl("a", WRITE)], True),
        ([acl("a", WRITE, host="10.0.0.0/24")], True),
        ([acl("a", WRITE, host="10.0.1.0/24")], False),
        ([acl("a", WRITE, principal="User:*")], True),
        ([acl("a", AclOperation.READ)], False),
        ([acl("a", WRITE), acl("a", WRITE, DENY)], False),
        ([acl("a", WRITE), acl("b", WRITE, DENY)], True),
        ([acl("a", WRITE), acl("*", AclOperation.ALL, DENY)], False),
        ([acl("*", WRITE), acl("a", WRITE, DENY)], True),
        ([acl("ab", WRITE), acl("a", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("a", WRITE, pattern=PREFIXED), acl("ab", WRITE, DENY, pattern=PREFIXED)], True),
        ([acl("a", WRITE, pattern=PREFIXED), acl("a", WRITE, DENY)], True),
        ([acl("hard", WRITE, pattern=PREFIXED), acl("hardcode", WRITE, DENY)], True),
    ],
)
def test_by_type_one_resource_that_no_denial_dominates_is_enough(acls: list[AclBinding], allowed: bool) -> None:
    assert by_type(*acls) is allowed


def test_by_type_super_users_and_the_setting_count() -> None:
    assert by_type(acl("*", AclOperation.ALL, DENY), principal=ROOT)
    assert authorizer(allow_if_no_acl=True).is_allowed_by_type(BOB, HOST, WRITE, TOPIC)


def _plainly(acls: list[AclBinding], operation: AclOperation, name: str, user: str) -> bool:
    """Rule 4 of the sheet, without an index; hosts are `*`."""
    implied = {AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}}
    allowed = False
    for one in acls:
        literal = one.pattern_type == PatternType.LITERAL
        if not (one.resource_name in (name, "*") if literal else name.startswith(one.resource_name)):
            continue
        if one.principal not in (user, "User:*"):
            continue
        if one.permission_type == Permission.DENY and one.operation in (operation, AclOperation.ALL):
            return False
        if one.permission_type == Permission.ALLOW:
            allowed |= one.operation in {operation, AclOperation.ALL, *implied.get(operation, ())}
    return allowed


def test_random_lists_that_change_decide_as_the_rules_say() -> None:
    draw = random.Random(23)
    kinds = list(AclOperation)[2:9]
    made, known = authorizer(), dict[bytes, AclBinding]()
    outcomes = []
    for step in range(3000):
        if len(known) > 12 or (known and draw.random() < 0.3):
            acl_id = draw.choice([*known])
            del known[acl_id]
            made.remove(acl_id)
        else:
            name = draw.choice(["*", *("".join(draw.choices("ab", k=size)) for size in (1, 2, 3))])
            pattern = PatternType.LITERAL if name == "*" else draw.choice([PatternType.LITERAL, PREFIXED])
            permission = DENY if draw.random() < 0.2 else Permission.ALLOW
            new = acl(
                name, draw.choice(kinds), permission, pattern=pattern, principal=draw.choice(["User:alice", "User:*"])
            )
            known[str(step).encode()] = new
            made.add(str(step).encode(), new)
        operation, name = draw.choice(kinds[1:]), "".join(draw.choices("ab", k=draw.randrange(1, 5)))
        outcomes.append(may(made, operation, name))
        assert outcomes[-1] == _plainly([*known.values()], operation, name, "User:alice")
        assert may(made, operation, name, BOB) == _plainly([*known.values()], operation, name, "User:bob")
    assert 300 < sum(outcomes) < 2700
    rebuilt = authorizer(*known.values())
    assert rebuilt.is_allowed_by_type(ALICE, HOST, WRITE, TOPIC) == made.is_allowed_by_type(ALICE, HOST, WRITE, TOPIC)


def test_the_cost_of_a_question_does_not_grow_with_the_list() -> None:
    """Looked at by what a question touches, not by a clock: of 20,000 rules it looks at those of its own names and principals."""
    looked = []

    class Watched(str):
        def __eq__(self, other: object) -> bool:
            looked.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    rules = [acl(f"topic-{index}", host=Watched("10.9.9.9")) for index in range(10_000)]
    rules += [acl("orders", principal=f"User:{index}", host=Watched("10.9.9.9")) for index in range(10_000)]
    made = authorizer(*rules, acl(host=Watched(HOST)))
    looked.clear()
    assert may(made)
    assert looked == [HOST]


def test_super_users_are_listed_with_semicolons() -> None:
    assert parse_super_users(" User:a ;User:CN=b,O=c;; ") == {"User:a", "User:CN=b,O=c"}
    with pytest.raises(ValueError, match="principalType:principalName but got bob"):
        parse_super_users("User:a;bob")
