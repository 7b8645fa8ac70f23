"""Users as `--add-scram` names them: Kafka's spelling, and errors that repeat nothing of it."""

from __future__ import annotations

import base64

import pytest

from barnabas.security.sasl.scram_argument import parse_scram_argument
from barnabas.security.sasl.scram_keys import ScramMechanism, credential_of_password, credential_of_salted_password

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def test_a_password() -> None:
    user = parse_scram_argument(' SCRAM-SHA-256=[name="alice",iterations=5000,salt="N3E=",password="a=b"] ')
    assert (user.mechanism, user.name, user.iterations, user.needs_password) == (SHA_256, "alice", 5000, False)
    assert user.credential(bytes) == credential_of_password(SHA_256, "a=b", b"7q", 5000)


def test_a_salted_password() -> None:
    user = parse_scram_argument('SCRAM-SHA-512=[name=alice,salt=N3E,saltedpassword="YCE="]')
    assert user.credential(bytes) == credential_of_salted_password(SHA_512, b"`!", b"7q", 4096)


def test_a_password_outweighs_a_salted_one() -> None:
    user = parse_scram_argument("SCRAM-SHA-256=[name=alice,password=p,saltedpassword=?]")
    assert (user.password, user.salted) == ("p", None)


def test_without_a_salt_it_is_random() -> None:
    user = parse_scram_argument("SCRAM-SHA-256=[name=alice,password=p,]")
    one, other = user.credential(lambda count: b"\1" * count), user.credential(lambda count: b"\2" * count)
    assert one.salt != other.salt
    assert one == credential_of_password(SHA_256, "p", one.salt)


def test_the_password_may_come_later() -> None:
    user = parse_scram_argument("SCRAM-SHA-256=[name=alice]")
    assert user.needs_password
    with pytest.raises(AssertionError):
        user.credential(bytes)


SECRET = base64.b64encode(b"hunter2").decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hunter2", "expected MECHANISM="),
        ("SCRAM-SHA-1=[name=a,password=hunter2]", "must be one of SCRAM-SHA-256, SCRAM-SHA-512"),
        ("SCRAM-SHA-256=name=a,password=hunter2", "with brackets"),
        ("SCRAM-SHA-256=[name=a,password=hunter2", "with brackets"),
        ("SCRAM-SHA-256=[", "with brackets"),
        ("SCRAM-SHA-256=[]", "no equals sign"),
        ("SCRAM-SHA-256=[name=a,password=x,hunter2]", "no equals sign"),
        ("SCRAM-SHA-256=[name=a,,password=hunter2]", "no equals sign"),
        ("SCRAM-SHA-256=[name=a,passwd=hunter2]", "unknown name"),
        ("SCRAM-SHA-256=[password=hunter2]", "name is missing"),
        ('SCRAM-SHA-256=[name="",password=hunter2]', "name is missing"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,salt=N3E!]", "salt is not valid base64"),
        (f"SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword={SECRET}!]", "saltedpassword is not valid base64"),
        (f"SCRAM-SHA-256=[name=a,saltedpassword={SECRET}]", "saltedpassword needs salt"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]", "iterations must be from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=16385]", "iterations must be from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=many]", "iterations must be from 4096 to 16384"),
    ],
)
def test_what_is_no_user(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        parse_scram_argument(text)
    assert "hunter2" not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_nothing_shows_the_password() -> None:
    assert "hunter2" not in repr(parse_scram_argument("SCRAM-SHA-256=[name=a,password=hunter2]"))
