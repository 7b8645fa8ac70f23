"""CreateAcls, DescribeAcls and DeleteAcls of a node: what is created, selected and removed, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from barnabas.security.acls import AclBinding, AclFilter
from barnabas.security.authorizer import StandardAuthorizer
from tests.api.served_node import Serving

RULE = AclBinding(2, "orders", 3, "User:alice", "*", 3, 3)
PREFIXED = RULE._replace(resource_name="ord", pattern_type=4, host="10.0.0.0/8")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Any]:
    node = Serving(tmp_path)
    node.server.services.authorizer = StandardAuthorizer({"User:ANONYMOUS"})
    yield node
    node.close()


def creation_of(*acls: AclBinding) -> CreateAclsRequest:
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    ]
    return CreateAclsRequest(creations=creations)


def create(serving: Any, *acls: AclBinding) -> list[tuple[str, str | None]]:
    answer = serving.ask(creation_of(*acls))
    return [(ErrorCode(result.error_code).name, result.error_message) for result in answer.results]


def fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def describe(serving: Any, **wanted: Any) -> set[AclBinding]:
    answer = serving.ask(DescribeAclsRequest(**fields(AclFilter(**wanted))))
    assert answer.error_code == 0
    return {
        AclBinding(
            each.resource_type, each.resource_name, each.pattern_type,
            acl.principal, acl.host, acl.operation, acl.permission_type,
        )
        for each in answer.resources
        for acl in each.acls
    }  # fmt: skip


def delete(serving: Any, *filters: AclFilter) -> list[tuple[str, str | None, set[str]]]:
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**fields(each)) for each in filters])
    return [
        (ErrorCode(one.error_code).name, one.error_message, {acl.resource_name for acl in one.matching_acls})
        for one in serving.ask(request).filter_results
    ]


def test_acls_are_created_once_described_and_deleted(serving: Any) -> None:
    assert create(serving, RULE, PREFIXED, RULE) == [("NONE", None)] * 3
    assert create(serving, RULE) == [("NONE", None)]
    assert describe(serving) == {RULE, PREFIXED}
    assert len(serving.server.services.image().acls.entries) == 2
    assert describe(serving, resource_name="orders", pattern_type=2) == {RULE, PREFIXED}
    assert describe(serving, resource_name="orders") == {RULE}
    assert describe(serving, principal="User:bob") == set()
    named = AclFilter(resource_name="orders")
    assert delete(serving, named, named, AclFilter(principal="User:bob")) == [
        ("NONE", None, {"orders"}),
        ("NONE", None, {"orders"}),
        ("NONE", None, set()),
    ]
    assert describe(serving) == {PREFIXED}
    assert delete(serving, AclFilter(operation=99)) == [("INVALID_REQUEST", "Unknown entryFilter.", set())]
    assert delete(serving, AclFilter(pattern_type=99)) == [("INVALID_REQUEST", "Unknown patternFilter.", set())]
    assert describe(serving) == {PREFIXED}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": 1}, "Invalid patternType ANY"),
        ({"pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)",
        ),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        ({"host": "10.0.0.0/33"}, "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
    ],
)
def test_a_wrong_acl_is_refused_and_the_others_are_created(serving: Any, wrong: dict[str, Any], why: str) -> None:
    assert create(serving, RULE._replace(**wrong), RULE) == [("INVALID_REQUEST", why), ("NONE", None)]
    assert describe(serving) == {RULE}


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_the_number_zero_makes_a_request_unreadable(serving: Any, field: str) -> None:
    with pytest.raises(RefusedRequest):
        create(serving, RULE._replace(**{field: 0}))
    with pytest.raises(RefusedRequest):
        describe(serving, **{field: 0})
    with pytest.raises(RefusedRequest):
        delete(serving, AclFilter(**{field: 0}))


@pytest.mark.slow
def test_a_change_must_fit_one_batch(serving: Any) -> None:
    many = [RULE._replace(resource_name=f"topic-{index}") for index in range(10_001)]
    assert {code for code, _ in create(serving, *many)} == {"POLICY_VIOLATION"}
    assert describe(serving) == set()
    create(serving, *many[:10_000])
    create(serving, RULE)
    code, why, matching = delete(serving, AclFilter())[0]
    assert (code, why, matching) == (
        "INVALID_REQUEST", "Cannot remove more than 10000 acls in a single delete operation.", set()
    )  # fmt: skip
    assert len(describe(serving)) == 10_001


def test_without_an_authorizer_there_are_no_acls(serving: Any) -> None:
    serving.server.services.authorizer = None
    assert create(serving, RULE) == [("SECURITY_DISABLED", "No Authorizer is configured.")]
    assert delete(serving, AclFilter())[0][:2] == ("SECURITY_DISABLED", "No Authorizer is configured.")
    answer = serving.ask(DescribeAclsRequest(**fields(AclFilter())))
    assert (answer.error_code, answer.error_message) == (54, "No Authorizer is configured on the broker")
