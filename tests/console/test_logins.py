"""Cookies end, and their number is bounded by time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.console.logins import SESSION_S, Logins
from barnabas.http_access import BadTokenFile

TOKEN = "0123456789abcdef0123"


def test_a_cookie_ends(tmp_path: Path) -> None:
    now = [100.0]
    (tmp_path / "token").write_text(TOKEN)
    logins = Logins(str(tmp_path / "token"), clock=lambda: now[0])
    cookie = asyncio.run(logins.log_in("", TOKEN))
    assert cookie is not None
    assert logins.who(cookie) == "token"
    assert (logins.name_of(None, cookie), logins.name_of("Bearer x", None), logins.name_of(None, "x")) == (
        "token",
        "token",
        None,
    )
    now[0] += SESSION_S
    assert logins.who(cookie) is None
    assert not logins.is_let_in(None, cookie)
    assert TOKEN not in repr(logins)


def test_without_files_everybody_is_let_in() -> None:
    assert Logins().is_let_in(None, None)
    assert not Logins().are_needed


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadTokenFile, match="no such file"):
        Logins(str(tmp_path / "absent")).check_files()
