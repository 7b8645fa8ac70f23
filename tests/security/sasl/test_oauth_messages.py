"""The grammar of OAUTHBEARER's first message."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_messages import BearerLogin, bearer_login, is_extension


def test_a_login_is_read_back() -> None:
    data = bearer_login("a.b.c=", {"logicalCluster": "lkc 1"})
    assert data == b"n,,\x01auth=Bearer a.b.c=\x01logicalCluster=lkc 1\x01\x01"
    login = BearerLogin.read(data)
    assert login == ("a.b.c=", "")
    assert "a.b.c" not in repr(login)
    assert BearerLogin.read(b"n,a=alice,\x01x=y\x01auth=bearer  t\x01\x01") == ("t", "alice")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Bearer t\x01", b"n,,auth=Bearer t\x01\x01", b"y,,\x01auth=Bearer t\x01\x01",
        b"n,,\x01x=y\x01\x01", b"n,,\x01auth=Basic t\x01\x01", b"n,,\x01auth=t\x01\x01", b"n,,\x01auth=Bearer t t\x01\x01",
        b"n,,\x01auth=Bearer hidd\xc3\xa9n\x01\x01", b"\0alice\0hidden",
    ],
)  # fmt: skip
def test_other_messages_are_refused_without_quoting_them(data: bytes) -> None:
    with pytest.raises(LoginFailed, match="Invalid OAUTHBEARER client first message") as failed:
        BearerLogin.read(data)
    assert "hidd" not in str(failed.value)


def test_extensions() -> None:
    assert is_extension("logicalCluster", "lkc-1")
    for name, value in (("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "x\x01b=c"), ("a", "ä")):
        assert not is_extension(name, value)
