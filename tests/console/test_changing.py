"""The one mechanism of every change: token, preview, name, audit log, result; and who may not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.app import Console
from barnabas.console.audit_log import AuditLog
from barnabas.console.logins import Logins
from barnabas.console.password_file import line_of
from barnabas.protocol.errors import KafkaError
from tests.console.conftest import cluster_at
from tests.console.forms import JSON, address, carry_out, preview, send
from tests.console.reading import tags

CREATE = address("topic-create")


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def writer(changed: barnabas.Broker, audit: Path) -> Iterator[TestClient]:
    console = Console([cluster_at(changed.bootstrap_servers)], audit=AuditLog(str(audit)))
    with TestClient(console.app(), base_url="http://localhost", follow_redirects=False) as client:
        yield client


def exists(admin: Admin, name: str) -> bool:
    return not isinstance(admin.describe_topics([name])[name], KafkaError)


def test_a_browser_without_javascript(writer: TestClient, admin: Admin) -> None:
    """Each page is a form that has all that the next request needs."""
    page = writer.get(CREATE).text
    token = next(each["value"] for tag, each in tags(page) if tag == "input" and each["name"] == "token")
    page = writer.post(
        CREATE, data={"token": token or "", "name": "by-hand", "partitions": "", "configs": "a=b\r\n"}
    ).text
    assert 'role="alert"' in page
    assert 'value="by-hand"' in page
    fields = {
        "token": token or "",
        "name": "by-hand",
        "partitions": "",
        "configs": "retention.ms=1000\r\nsegment.ms=5000\r\n",
    }
    page = writer.post(CREATE, data=fields).text
    assert "<h1>Create topic by-hand?</h1>" in page
    hidden = {
        str(each["name"]): each["value"] or ""
        for tag, each in tags(page)
        if tag == "input" and each["type"] == "hidden"
    }
    # A browser writes each end of a line of a form as CRLF.
    again = {name: value.replace("\n", "\r\n") for name, value in hidden.items()}
    answer = writer.post(CREATE, data=again)
    assert (answer.status_code, "<h1>Done: Create topic by-hand</h1>" in answer.text) == (200, True)
    assert 'href="/clusters/local/topic?name=by-hand"' in answer.text
    assert exists(admin, "by-hand")


@pytest.mark.parametrize("token", [None, "", "x", "0" * 64, "é"])
def test_a_forged_form(writer: TestClient, admin: Admin, audit: Path, token: str | None) -> None:
    fields = {"name": "forged"} | ({} if token is None else {"token": token})
    for more in ({}, {"preview": "x"}):
        answer = send(writer, "topic-create", {**fields, **more})
        assert (answer.status, "no token of this console" in answer.error) == (403, True)
    assert not exists(admin, "forged")
    assert not audit.exists()


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_a_form_of_another_site(writer: TestClient, headers: dict[str, str]) -> None:
    token = writer.get(CREATE, headers=JSON).json()["token"]
    answer = writer.post(CREATE, data={"token": token, "name": "foreign"}, headers=headers)
    assert (answer.status_code, answer.text) == (403, "The form is not from a page of this console (Origin).\n")


def test_a_preview_counts_once(writer: TestClient, admin: Admin, audit: Path) -> None:
    shown = preview(writer, "topic-create", name="counts-once")
    assert carry_out(writer, shown).status == 200
    admin.delete_topics(["counts-once"])
    again = carry_out(writer, shown)
    assert (again.status, "was carried out before" in again.error) == (409, True)
    assert not exists(admin, "counts-once")
    invented = send(writer, "topic-create", {**shown.data["send"], "preview": "invented"})
    assert invented.status == 409
    assert len(audit.read_text().splitlines()) == 2


def test_a_form_that_is_not_the_one_of_its_preview(writer: TestClient, admin: Admin) -> None:
    shown = preview(writer, "topic-create", name="shown")
    other = send(writer, "topic-create", {**shown.data["send"], "name": "other"})
    assert (other.status, "has changed since the preview" in other.error) == (409, True)
    moved = send(writer, "topic-delete", shown.data["send"])
    assert moved.status == 409
    assert not exists(admin, "other")


def test_without_an_audit_log_nothing_is_changed(writer: TestClient, admin: Admin, audit: Path) -> None:
    shown = preview(writer, "topic-create", name="unlogged")
    audit.mkdir()
    refused = carry_out(writer, shown)
    assert (refused.status, refused.error) == (
        503,
        f"The audit log {audit} cannot be written: is a directory. Nothing was changed.",
    )
    assert not exists(admin, "unlogged")


def test_what_the_cluster_rejects_is_in_the_audit_log(writer: TestClient, admin: Admin, audit: Path) -> None:
    shown = preview(writer, "user-create", name="carol", mechanism="SCRAM-SHA-256")
    assert carry_out(writer, shown, password="a", again="b").status == 400
    begun, failed = [json.loads(line) for line in audit.read_text().splitlines()]
    assert (begun["result"], failed["result"], failed["rows"]) == ("begun", "failed", [])
    assert failed["error"] == "The two passwords are not the same."
    assert begun["from"] == "testclient"


def test_a_login_of_one_is_not_that_of_another(changed: barnabas.Broker, tmp_path: Path, audit: Path) -> None:
    (tmp_path / "users").write_text("\n".join(line_of(name, "correct horse", bytes(16)) for name in ("alice", "bob")))
    logins = Logins(password_file=str(tmp_path / "users"))
    app = Console([cluster_at(changed.bootstrap_servers)], logins, audit=AuditLog(str(audit))).app()
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as alice:
        assert alice.post(CREATE, data={"name": "x"}).status_code == 401
        bob = TestClient(app, base_url="http://localhost", follow_redirects=False)
        for name, browser in (("alice", alice), ("bob", bob)):
            browser.post("/login", data={"name": name, "secret": "correct horse"})
        shown = preview(alice, "topic-create", name="by-alice")
        assert carry_out(bob, shown).status == 403
        own = bob.get(CREATE, headers=JSON).json()["token"]
        assert send(bob, "topic-create", {**shown.data["send"], "token": own}).status == 409
        shown = preview(alice, "topic-create", name="by-alice")
        assert carry_out(alice, shown).status == 200
        assert {json.loads(line)["who"] for line in audit.read_text().splitlines()} == {"alice"}
        alice.post("/logout", content=b"")
        expired = alice.post(CREATE, data=shown.data["send"], headers={"accept": "text/html"})
        assert (expired.status_code, expired.headers["location"].startswith("/login?to=")) == (303, True)


def test_a_change_that_is_not_there(writer: TestClient) -> None:
    assert writer.get(address("no-such")).status_code == 404
    assert writer.post(address("topic-create", "no-such"), data={"a": "b"}).status_code == 404
    assert writer.post("/clusters/local/topics", data={"a": "b"}).status_code == 405
