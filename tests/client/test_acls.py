"""Access control lists asked of a cluster: requests and answers; `tests/conform/test_acls` asks both brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.acls import create_acls, delete_acls, list_acls
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from barnabas.security.acls import AclBinding, AclFilter

RULE = AclBinding(2, "orders", 3, "User:alice", "*", 3, 3)


class Answering:
    """A cluster whose only broker gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.request_seen: Any = None

    def any_connection(self) -> Answering:
        return self

    def request(self, request: Any) -> Any:
        self.request_seen = request
        return self.answer

    def retry(self, ask: Callable[[], Any]) -> Any:
        return ask()


def test_a_list_is_sorted_and_flat() -> None:
    acl = DescribeAclsResponse.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
    resources = [
        DescribeAclsResponse.DescribeAclsResource(resource_type=2, resource_name=name, pattern_type=3, acls=[acl])
        for name in ("orders", "audit")
    ]
    cluster: Any = Answering(DescribeAclsResponse(resources=resources))
    assert list_acls(cluster, AclFilter(resource_type=2)) == [RULE._replace(resource_name="audit"), RULE]
    assert cluster.request_seen.resource_type_filter == 2
    assert cluster.request_seen.principal_filter is None


def test_errors_of_lists_and_deletions_are_raised() -> None:
    refused: Any = Answering(
        DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer")
    )
    with pytest.raises(KafkaError, match="No Authorizer"):
        list_acls(refused, AclFilter())
    failed = DeleteAclsResponse.DeleteAclsFilterResult(error_code=42, error_message="Unknown entryFilter.")
    cluster: Any = Answering(DeleteAclsResponse(filter_results=[failed]))
    with pytest.raises(KafkaError, match="Unknown entryFilter"):
        delete_acls(cluster, AclFilter())


def test_creations_have_an_outcome_each() -> None:
    result = CreateAclsResponse.AclCreationResult
    cluster: Any = Answering(
        CreateAclsResponse(results=[result(error_message=None), result(error_code=42, error_message="Invalid")])
    )
    fine, wrong = create_acls(cluster, [RULE, RULE._replace(operation=1)])
    assert fine is None
    assert wrong is not None
    assert (wrong.code, wrong.message) == (ErrorCode.INVALID_REQUEST, "Invalid")
    assert [each.operation for each in cluster.request_seen.creations] == [3, 1]


def test_deleted_acls_come_back() -> None:
    matching = DeleteAclsResponse.DeleteAclsMatchingAcl(**RULE._asdict())
    done = DeleteAclsResponse.DeleteAclsFilterResult(error_message=None, matching_acls=[matching])
    cluster: Any = Answering(DeleteAclsResponse(filter_results=[done]))
    assert delete_acls(cluster, AclFilter()) == [RULE]
