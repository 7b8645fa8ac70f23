"""Hosts that name this machine, and bearer tokens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas.http_access import BadTokenFile, is_own_host, read_token, shows_token

TOKEN = b"0123456789abcdef"


@pytest.mark.parametrize(
    "named",
    [
        "localhost", "LOCALHOST:9308", "localhost.", "node.localhost", "127.0.0.1", "127.0.0.2:80", "[::1]", "[::1]:9308",
        "metrics.example:9308", "Metrics.Example", socket.gethostname(),
    ],
)  # fmt: skip
def test_names_of_this_machine(named: str) -> None:
    assert is_own_host(named, "metrics.example")


@pytest.mark.parametrize(
    "named",
    [
        "", ":9308", "evil.example", "evil.example:9308", "localhost.evil.example", "evillocalhost", "127.0.0.1.evil.example",
        "10.0.0.1", "0.0.0.0", "1.2", "[::2]", "::1", "localhost:x", "localhost@evil.example", "localhost evil.example",
    ],
)  # fmt: skip
def test_names_of_other_machines(named: str) -> None:
    assert not is_own_host(named, "")


@pytest.mark.parametrize(
    ("shown", "is_right"),
    [
        ("Bearer 0123456789abcdef", True),
        ("bearer  0123456789abcdef ", True),
        ("Bearer 0123456789abcdeg", False),
        ("Bearer 0123456789abcde", False),
        ("Bearer \xff", False),
        ("0123456789abcdef", False),
        ("Basic 0123456789abcdef", False),
        ("", False),
    ],
)
def test_tokens_that_are_shown(shown: str, is_right: bool) -> None:
    assert shows_token(shown, TOKEN) is is_right


def test_a_file_has_one_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\n 0123456789abcdef+/==\r\n")
    assert read_token(str(file)) == b"0123456789abcdef+/=="


@pytest.mark.parametrize("content", [b"", b"hunter2", b"0123456789abcdef 0123", b"0123456789abcde\xff", b"x" * 4097])
def test_a_file_without_a_token_is_named_without_what_it_holds(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(BadTokenFile) as caught:
        read_token(str(file))
    assert str(caught.value) == (
        f"{file}: it must hold one token of 16 characters or more, as from `openssl rand -hex 32`"
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadTokenFile, match=f"^{tmp_path}: is a directory$"):
        read_token(str(tmp_path))
