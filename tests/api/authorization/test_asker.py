"""Who asks: kept decisions, the audit, and what happens before the lists are loaded."""

from __future__ import annotations

import logging

import pytest

from barnabas.api.authorization.asker import Asker, Decisions
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.principal import Principal

BOB = Principal("User", "bob")
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
RULE = AclBinding(TOPIC, "orders", PatternType.LITERAL, "User:bob", "10.0.0.7", READ, Permission.ALLOW)
AUDIT = "kafka.authorizer.logger"


class Counting(StandardAuthorizer):
    asked = 0

    def is_allowed(self, *question: object) -> bool:
        self.asked += 1
        return super().is_allowed(*question)  # type: ignore[arg-type]


@pytest.fixture
def authorizer() -> Counting:
    made = Counting({"User:admin"})
    made.replace({})
    return made


def asker(authorizer: StandardAuthorizer, decisions: Decisions | None = None, principal: Principal = BOB) -> Asker:
    return Asker(
        authorizer, principal, "::ffff:10.0.0.7", decisions or Decisions(), api_key=ApiKey.FETCH, version=12,
        image=MetadataImage,
    )  # fmt: skip


def test_a_decision_is_kept_until_the_lists_change(authorizer: Counting) -> None:
    decisions = Decisions()
    for _ in range(3):
        assert not asker(authorizer, decisions).may(READ, TOPIC, "orders")
    assert authorizer.asked == 1
    authorizer.add(b"1", RULE)
    assert asker(authorizer, decisions).may(READ, TOPIC, "orders")
    assert authorizer.asked == 2


def test_a_connection_that_logs_in_again_keeps_nothing(authorizer: Counting) -> None:
    decisions = Decisions()
    assert asker(authorizer, decisions, Principal("User", "admin")).may(READ, TOPIC, "orders")
    assert not asker(authorizer, decisions).may(READ, TOPIC, "orders")


def test_a_refusal_is_one_line_of_audit(authorizer: Counting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, AUDIT)
    asker(authorizer).may(READ, TOPIC, "orders", times=2)
    asker(authorizer).may(READ, TOPIC, "orders", is_loud=False)
    authorizer.add(b"1", RULE)
    asker(authorizer).may(READ, TOPIC, "orders")
    assert [record.getMessage() for record in caplog.records if record.name == AUDIT] == [
        "Principal = User:bob is Denied operation = READ from host = 10.0.0.7 on resource = Topic:LITERAL:orders "
        "for request = Fetch with resourceRefCount = 2 based on rule DefaultDeny"
    ]


def test_what_is_allowed_is_audited_below_info(authorizer: Counting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, AUDIT)
    authorizer.add(b"1", RULE)
    asker(authorizer).may(READ, TOPIC, "orders")
    (line,) = [record.getMessage() for record in caplog.records if record.name == AUDIT]
    assert line.startswith("Principal = User:bob is Allowed operation = READ from host = 10.0.0.7")
    assert line.endswith(f"based on rule MatchingAcl(acl={RULE})")


def test_a_name_cannot_begin_a_line_of_its_own(authorizer: Counting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, AUDIT)
    asker(authorizer).may(READ, TOPIC, "a\nPrincipal = User:bob is Allowed")
    (record,) = [record for record in caplog.records if record.name == AUDIT]
    assert "\n" not in record.getMessage()


def test_before_the_lists_are_loaded_only_super_users_get_an_answer() -> None:
    loading = StandardAuthorizer({"User:admin"})
    with pytest.raises(KafkaError) as raised:
        asker(loading).may(READ, TOPIC, "orders")
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert asker(loading, principal=Principal("User", "admin")).may(READ, TOPIC, "orders")
