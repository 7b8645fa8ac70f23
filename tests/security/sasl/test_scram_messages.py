"""The grammar of SCRAM's messages, right and wrong."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst, escaped_name


@pytest.mark.parametrize("name", ["user", "a,b", "a=b", "=2C", "=3D,=", "sp ace", 'q"uote'])
def test_names_are_escaped_and_read_back(name: str) -> None:
    first = ClientFirst.read(f"n,,n={escaped_name(name)},r=nonce".encode())
    assert first.user == name
    assert first.bare == f"n={escaped_name(name)},r=nonce"


def test_a_first_message_may_have_an_authorization_id_and_extensions() -> None:
    first = ClientFirst.read(b"n,a=alice,n=alice,r=xyz,tokenauth=true,other=a=b")
    assert (first.authorization_id, first.nonce) == ("alice", "xyz")
    assert first.extensions == {"tokenauth": "true", "other": "a=b"}
    assert first.is_by_token
    assert not ClientFirst.read(b"n,,n=alice,r=xyz,tokenauth=false").is_by_token


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"n,,",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,m=must,n=alice,r=x",  # RFC 5802: a server that does not know the extension fails the login
        b"n,,n=al=ice,r=x",
        b"n,,n=al=2cice,r=x",
        "n,,n=ällice,r=x".encode(),
        b"n,,n=alice,r=x y",
        b"n,,n=alice,r=x,",
        b"n,,n=alice,r=x\n",
        b"\xff\xfe",
        b"\0user\0password",
    ],
)
def test_other_first_messages_are_refused(data: bytes) -> None:
    with pytest.raises(LoginFailed, match="Invalid SCRAM client first message format"):
        ClientFirst.read(data)


def test_a_servers_first_message() -> None:
    assert ServerFirst.read(b"r=abc,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,x=y")[2] == 4096
    assert ServerFirst.read(b"r=a,s=,i=" + b"9" * 5000).iterations == 99_999_999_999
    for data in (b"r=a,s=W22,i=4096", b"r=a,s=,i=", b"r=a,s=,i=-1", b"s=,r=a,i=4096"):
        with pytest.raises(LoginFailed, match="server first"):
            ServerFirst.read(data)


def test_last_messages() -> None:
    final = ClientFinal.read(b"c=biws,r=abc,x=y,p=AAAA")
    assert (final.without_proof, final.nonce, final.proof) == ("c=biws,r=abc,x=y", "abc", b"\0\0\0")
    assert ServerFinal.read(b"v=AAAA,x=y") == (b"\0\0\0", None)
    assert ServerFinal.read(b"e=invalid-proof") == (b"", "invalid-proof")
    for data in (b"", b"c=biws,r=abc", b"c=biws,r=abc,p=A", b"c=biws,r=abc,p=AAAA,x=y"):
        with pytest.raises(LoginFailed, match="client final"):
            ClientFinal.read(data)
    for data in (b"", b"v=A", b"e=", b"x=y"):
        with pytest.raises(LoginFailed, match="server final"):
            ServerFinal.read(data)


def test_an_error_does_not_quote_the_message() -> None:
    with pytest.raises(LoginFailed) as failed:
        ClientFirst.read(b"\0alice\0a-password-sent-by-mistake")
    assert "mistake" not in str(failed.value)
