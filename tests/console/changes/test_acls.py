"""Access control lists."""

from __future__ import annotations

from starlette.testclient import TestClient

import barnabas
from tests.console.forms import carry_out, change, preview
from tests.console.reading import html, printed, twin

READ = {"principal": "User:<script>", "permission": "allow", "operation": "read", "resource": "topic", "name": "orders"}


def test_an_acl_is_created_explained_and_deleted(changed: barnabas.Broker, writer: TestClient) -> None:
    shown = preview(writer, "acl-create", **READ)
    words = ("acl", "create", "--allow-principal", "User:<script>", "--operation", "read", "--topic", "orders", "-d")
    assert shown.rows == printed(changed.bootstrap_servers, *words)
    assert carry_out(writer, shown).rows[0]["status"] == "created"
    assert preview(writer, "acl-create", **READ).data["notes"] == ["there is this ACL already"]
    question = {
        "principal": "User:<script>",
        "host": "10.0.0.1",
        "operation": "read",
        "resource": "topic",
        "name": "orders",
    }
    answer = twin(writer, "acls", **question)["explain"]
    told = (
        "acl",
        "explain",
        "--principal",
        "User:<script>",
        "--host",
        "10.0.0.1",
        "--operation",
        "read",
        "--topic",
        "orders",
    )
    assert answer == printed(changed.bootstrap_servers, *told)
    assert answer[0]["decision"] == "ALLOWED"
    assert twin(writer, "acls", **{**question, "operation": "write"})["explain"][0]["decision"] == "DENIED"
    assert "<script>" not in html(writer, "acls", **question)
    shown = preview(writer, "acl-delete", principal="User:<script>", resource="", permission="", operation="")
    assert (shown.data["destroys"], len(shown.rows)) == ("User:<script>", 1)
    assert carry_out(writer, shown).rows[0]["status"] == "deleted"
    assert twin(writer, "acls")["acls"] == []


def test_more_acls_than_the_preview_had(writer: TestClient) -> None:
    change(writer, "acl-create", **{**READ, "principal": "User:bob"})
    shown = preview(writer, "acl-delete", principal="User:bob", resource="", permission="", operation="")
    change(writer, "acl-create", **{**READ, "principal": "User:bob", "operation": "write"})
    refused = carry_out(writer, shown)
    assert (refused.status, len(refused.rows)) == (409, 2)
    assert len(carry_out(writer, refused._replace(status=200)).rows) == 2


def test_what_is_not_an_acl(writer: TestClient) -> None:
    for wrong in (
        {"principal": "alice"},
        {"operation": "<b>"},
        {"resource": "", "name": ""},
        {"resource": "topic", "name": ""},
        {"permission": "maybe"},
        {"host": "10.0.0.0/99"},
    ):
        assert preview(writer, "acl-create", **{**READ, **wrong}).status == 400
    nothing = {"resource": "", "permission": "", "operation": ""}
    assert preview(writer, "acl-delete", **nothing).status == 400
    assert "No ACL is selected" in preview(writer, "acl-delete", **nothing, principal="User:nobody-here").error
