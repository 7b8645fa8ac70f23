"""Hosts, origins, logins and the headers of every response."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from barnabas.console.app import Console
from barnabas.console.guard import COOKIE, HEADERS, is_here
from barnabas.console.links import Links
from barnabas.console.logins import Logins
from barnabas.console.password_file import line_of
from tests.console.conftest import cluster_at

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def guarded(tmp_path: Path) -> TestClient:
    """A browser that has not logged in."""
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "users").write_text(line_of("alice", "correct horse", bytes(16)))
    logins = Logins(str(tmp_path / "token"), str(tmp_path / "users"))
    app = Console([cluster_at("127.0.0.1:1", timeout_ms=500)], logins, names=["console.example"]).app()
    return TestClient(app, base_url="http://localhost", follow_redirects=False)


@pytest.mark.parametrize("path", ["/", "/clusters/local/", "/nothing", "/static/htmx.min.js", "/login"])
def test_every_response_has_the_headers(browser: TestClient, path: str) -> None:
    found = browser.get(path).headers
    assert {name: found[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in found["content-security-policy"]
    assert found["cache-control"] == ("max-age=3600" if "static" in path else "no-store")


def test_a_browser_names_the_console_as_the_origin_of_its_forms() -> None:
    """Under `no-referrer` it sends `Origin: null`, as the Fetch standard says, and the guard would refuse each form."""
    assert HEADERS["referrer-policy"] == "same-origin"


def test_another_name_is_not_answered(browser: TestClient, guarded: TestClient) -> None:
    for host, status in (("evil.example", 403), ("localhost:8080", 303), ("127.0.0.1:8080", 303)):
        assert browser.get("/", headers={"host": host}).status_code == status
    assert guarded.get("/login", headers={"host": "console.example"}).status_code == 200
    assert guarded.get("/login", headers={"host": "console.example:443"}).status_code == 200


def test_without_a_login_nothing_is_shown(guarded: TestClient) -> None:
    answer = guarded.get("/clusters/local/topics?q=a", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?to=%2Fclusters%2Flocal%2Ftopics%3Fq%3Da")
    answer = guarded.get("/clusters/local/topics", headers={"accept": "application/json"})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert guarded.get("/clusters/local/events").status_code == 401


def test_a_token(guarded: TestClient) -> None:
    for token, status in ((TOKEN, 303), ("x" * 20, 401), ("", 401)):
        assert guarded.get("/", headers={"authorization": f"Bearer {token}"}).status_code == status


@pytest.mark.parametrize(
    "form", [{"name": "alice", "secret": "correct horse"}, {"secret": TOKEN}], ids=["user", "token"]
)
def test_a_login_and_its_end(guarded: TestClient, form: dict[str, str]) -> None:
    answer = guarded.post("/login", data={**form, "to": "/clusters/local/topics"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/clusters/local/topics")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in (COOKIE, "HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"))
    assert guarded.get("/clusters/local/topics").status_code == 200
    kept = guarded.cookies[COOKIE]
    assert guarded.post("/logout", content=b"").headers["location"] == "/login"
    # The server has forgotten it too.
    assert guarded.get("/clusters/local/topics", headers={"cookie": f"{COOKIE}={kept}"}).status_code == 401


@pytest.mark.parametrize(
    "form",
    [{"name": "alice", "secret": "wrong"}, {"name": "bob", "secret": "correct horse"}, {"secret": ""}, {"name": "alice", "secret": TOKEN}],
)  # fmt: skip
def test_a_wrong_login(guarded: TestClient, form: dict[str, str]) -> None:
    answer = guarded.post("/login", data=form)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert "That is not right" in answer.text
    assert not form["secret"] or form["secret"] not in answer.text


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}]
)  # fmt: skip
def test_a_forged_form(guarded: TestClient, headers: dict[str, str]) -> None:
    assert guarded.post("/login", data={"secret": TOKEN}, headers=headers).status_code == 403


def test_a_form_that_is_too_long(guarded: TestClient) -> None:
    assert guarded.post("/login", data={"secret": "x" * 70_000}).status_code == 413


def test_a_login_leads_to_no_other_site(guarded: TestClient) -> None:
    for to in ("//evil.example", "https://evil.example", "/\\evil.example"):
        assert not is_here(to, Links(""))
        assert guarded.post("/login", data={"secret": TOKEN, "to": to}).headers["location"] == "/"
    assert is_here("/kafka/clusters/a/", Links("/kafka"))
    assert not is_here("/other", Links("/kafka"))
