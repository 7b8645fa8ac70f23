"""ACLs in the words of the command line: each option, and each mistake in one sentence."""

from __future__ import annotations

import pytest

from barnabas.security.acl_words import parse_acl
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType


def test_an_acl_for_each_principal_and_operation() -> None:
    found = parse_acl(
        "--allow-principal User:alice --deny-principal=User:* --operation read --operation describe --topic orders"
    )
    assert len(found) == 4
    assert found[0] == AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", AclOperation.READ, Permission.ALLOW
    )
    assert found[3] == AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:*", "*", AclOperation.DESCRIBE, Permission.DENY
    )


def test_prefixes_hosts_and_the_cluster() -> None:
    (one,) = parse_acl("--allow-principal User:a --operation Write --group 'shop floor' --prefixed --host ::1")
    assert (one.resource_name, one.pattern_type, one.host) == ("shop floor", PatternType.PREFIXED, "0:0:0:0:0:0:0:1")
    (whole,) = parse_acl("--allow-principal User:a --operation IDEMPOTENT_WRITE --cluster")
    assert (whole.resource_type, whole.resource_name) == (ResourceType.CLUSTER, "kafka-cluster")
    assert whole.operation == AclOperation.IDEMPOTENT_WRITE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--allow-principal User:a --operation read", "name one resource"),
        ("--allow-principal User:a --operation read --topic a --group b", "name one resource"),
        ("--operation read --topic a", "name who may or may not"),
        ("--allow-principal User:a --topic a", "name what: --operation"),
        ("--allow-principal alice --operation read --topic a", "alice is not a principal: write Type:name"),
        ("--allow-principal User:a --operation raed --topic a", "there is no operation raed; did you mean read?"),
        ("--allow-principl User:a --operation read --topic a", "did you mean --allow-principal?"),
        ("--allow-principal User:a --operation read --topic", "--topic has no value"),
        ("User:a read orders", "'User:a' is not an option; write --allow-principal"),
        ("--allow-principal User:a --operation read --topic a --host 10.0.0.0/99", "Value [99] not in range [0,32]"),
        ("--topic 'a", "a quotation mark is missing"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_acl(text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
