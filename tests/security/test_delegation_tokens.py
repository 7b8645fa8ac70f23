"""The HMAC of a delegation token and the login that is derived from it."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from barnabas.security.delegation_tokens import TokenKey, TokenSettings
from barnabas.security.sasl.scram_keys import ScramMechanism, made_up_credential, salted_password

KEY = TokenKey("a secret of the cluster")
TOKEN = "JEXY6aqzQY-32P5TStzaFg"


def test_the_hmac_is_that_of_the_id_under_the_secret() -> None:
    assert KEY.hmac(TOKEN) == hmac.new(b"a secret of the cluster", TOKEN.encode(), hashlib.sha512).digest()
    assert KEY.is_of(TOKEN, KEY.hmac(TOKEN))


@pytest.mark.parametrize(
    "wrong", [b"", b"x" * 64, KEY.hmac("another"), TokenKey("another").hmac(TOKEN), KEY.hmac(TOKEN)[:-1]]
)
def test_another_hmac_is_not_the_tokens(wrong: bytes) -> None:
    assert not KEY.is_of(TOKEN, wrong)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_the_password_is_the_hmac_in_base64(mechanism: ScramMechanism) -> None:
    credential = KEY.credential(mechanism, TOKEN, b"made up")
    password = base64.b64encode(KEY.hmac(TOKEN)).decode()
    salted = salted_password(mechanism, password, credential.salt, 4096)
    assert credential.iterations == 4096
    assert credential.stored_key == mechanism.hash(mechanism.hmac(salted, b"Client Key"))
    assert credential.server_key == mechanism.hmac(salted, b"Server Key")


def test_a_token_has_the_salt_that_a_stranger_would_get() -> None:
    """Else a client could ask which ids exist."""
    sha = ScramMechanism.SCRAM_SHA_256
    assert KEY.credential(sha, TOKEN, b"made up").salt == made_up_credential(sha, TOKEN, b"made up").salt
    assert KEY.credential(sha, TOKEN, b"made up").salt != KEY.credential(sha, "another", b"made up").salt


def test_nothing_shows_the_secret() -> None:
    assert "secret" not in repr(TokenSettings(KEY))
