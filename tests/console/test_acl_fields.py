"""What forms about access control lists name."""

from __future__ import annotations

import pytest

from barnabas.console.acl_fields import operation_of, principal_of, resource_of
from barnabas.console.changes.given import BadForm, Given
from barnabas.security.acls import AclOperation, ResourceType


def test_names() -> None:
    assert principal_of(Given({"principal": " User:alice "})) == "User:alice"
    assert operation_of(Given({"operation": "describe-configs"})) is AclOperation.DESCRIBE_CONFIGS
    assert resource_of(Given({"resource": "group", "name": "*"})) == (ResourceType.GROUP, "*")
    assert resource_of(Given({"resource": "cluster"})) == (ResourceType.CLUSTER, "kafka-cluster")
    assert resource_of(Given({})) is None


@pytest.mark.parametrize("fields", [{"resource": "topic"}, {"name": "orders"}, {"resource": "<b>", "name": "x"}])
def test_half_a_resource(fields: dict[str, str]) -> None:
    with pytest.raises(BadForm):
        resource_of(Given(fields))


def test_what_is_not_a_principal() -> None:
    for text, words in (
        ("", "is missing"),
        ("alice", "write Type:name"),
        ("<script>\n", r"\\n is not a principal|is not a principal"),
    ):
        with pytest.raises(BadForm, match=words):
            principal_of(Given({"principal": text}))
