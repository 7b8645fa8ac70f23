"""Users of SCRAM; their passwords are nowhere."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

import barnabas
from tests.console.forms import address, carry_out, change, preview
from tests.console.reading import printed

PASSWORD = "correct horse battery"


def test_a_user_begins_and_ends(changed: barnabas.Broker, writer: TestClient, audit: Path) -> None:
    shown = preview(writer, "user-create", name="alice", mechanism="SCRAM-SHA-256")
    assert shown.rows == printed(
        changed.bootstrap_servers, "user", "create", "alice", "--mechanism", "SCRAM-SHA-256", "-d"
    )
    assert shown.data["asks"] == ["password", "again"]
    refused = carry_out(writer, shown, password=PASSWORD, again="another")
    assert (refused.status, refused.error) == (400, "The two passwords are not the same. Nothing was changed.")
    done = carry_out(writer, refused._replace(status=200), password=PASSWORD, again=PASSWORD)
    assert done.rows == [{"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096, "status": "created"}]
    assert (
        "alice exists with SCRAM-SHA-256"
        in preview(writer, "user-create", name="alice", mechanism="SCRAM-SHA-256").error
    )
    shown = preview(writer, "user-password", name="alice", iterations="5000")
    assert carry_out(writer, shown, password="x", again="x").rows[0]["iterations"] == 5000
    assert PASSWORD not in audit.read_text()
    assert change(writer, "user-delete", name="alice").rows[0]["status"] == "deleted"
    assert "User alice does not exist" in preview(writer, "user-delete", name="alice").error


def test_the_page_asks_for_the_password_once(writer: TestClient) -> None:
    token = preview(writer, "user-create", name="bob", mechanism="SCRAM-SHA-512").data["send"]["token"]
    page = writer.post(address("user-create"), data={"name": "bob", "mechanism": "SCRAM-SHA-512", "token": token}).text
    assert page.count('type="password"') == 2
    assert page.count('autocomplete="new-password"') == 2


def test_what_is_not_a_user(writer: TestClient) -> None:
    for fields in ({"name": "é"}, {"name": "a", "iterations": "1"}, {"name": "a", "iterations": "9999999"}):
        assert preview(writer, "user-create", mechanism="SCRAM-SHA-256", **fields).status == 400
    assert preview(writer, "user-create", name="a", mechanism="<b>").status == 400
    assert "User absent does not exist" in preview(writer, "user-password", name="absent").error
