"""Signatures of tokens, and the key set that outlives its server."""

from __future__ import annotations

import base64
import hmac
import json
import sys

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from barnabas.security.sasl.oauth_claims import ClaimRules
from barnabas.security.sasl.oauth_keys import KeySet, TokenValidator, json_part
from barnabas.security.sasl.oauth_server import InvalidToken
from barnabas.security.setting_error import SecuritySettingError

NOW_S = 1_700_000_000
CLAIMS = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
OTHER_EC = ECKey.generate_key("P-256", {"kid": "ec"})
SECRET = OctKey.import_key("0123456789abcdef0123456789abcdef", {"kid": "secret"})


def document(*keys: RSAKey | ECKey | OctKey, **others: object) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys], **others}).encode()


def key_set(*keys: RSAKey | ECKey | OctKey) -> KeySet:
    keys_ = KeySet()
    keys_.replace(document(*keys))
    return keys_


def signed(key: RSAKey | ECKey | OctKey, algorithm: str, **header: object) -> str:
    return jwt.encode({"alg": algorithm, **header}, CLAIMS, key, algorithms=[algorithm])


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256")])
@pytest.mark.parametrize("header", [{}, {"kid": True}])
def test_signed_tokens(key: RSAKey | ECKey, algorithm: str, header: dict[str, object]) -> None:
    named = {"kid": key.kid} if header else {}
    validate = TokenValidator(key_set(RSA, EC), ClaimRules(), lambda: NOW_S * 1000)
    assert validate(signed(key, algorithm, **named)) == ("alice", (NOW_S + 60) * 1000, frozenset())


def test_claims_are_checked_after_the_signature() -> None:
    validate = TokenValidator(key_set(EC), ClaimRules(), lambda: (NOW_S + 100) * 1000)
    with pytest.raises(InvalidToken, match="has expired"):
        validate(signed(EC, "ES256"))


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (f"{encoded({'alg': 'none'})}.{encoded(CLAIMS)}.", "not signed by one of"),
        (f"{encoded({'alg': 'None'})}.{encoded(CLAIMS)}.", "not signed by one of"),
        (f"{encoded({'alg': ['RS256']})}.{encoded(CLAIMS)}.", "not signed by one of"),
        (signed(SECRET, "HS256"), "not signed by one of"),
        (signed(OTHER_EC, "ES256"), "does not fit"),
        (signed(EC, "ES256", kid="unknown"), "does not have"),
        (signed(EC, "ES256", kid="rsa"), "does not have"),
        (signed(EC, "ES256")[:-4] + "AAAA", "does not fit"),
        ("a.b", "three parts"),
        ("", "three parts"),
        ("....", "three parts"),
        ("ä.b.c", "not JSON"),
        (f"{encoded([])}.b.c", "not made of JSON objects"),
        (base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".b.c", "not JSON"),
        (f"{encoded({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.{encoded(CLAIMS)}.AAAA", "does not fit"),
    ],
    ids=[
        "none", "None", "list", "hmac", "foreign key", "unknown kid", "kid of another type", "cut signature",
        "two parts", "empty", "five parts", "not ASCII", "not an object", "deep nesting", "unknown crit",
    ],
)  # fmt: skip
def test_tokens_that_are_refused(token: str, why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        key_set(RSA, EC).claims(token)


def test_a_signed_token_with_an_unknown_crit_is_refused() -> None:
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry({"x": _any_header()}, algorithms=["ES256"], strict_check_header=False)
    token = jwt.encode({"alg": "ES256", "crit": ["x"], "x": "1"}, CLAIMS, EC, registry=registry)
    with pytest.raises(InvalidToken, match="does not fit"):
        key_set(EC).claims(token)


def _any_header() -> object:
    from joserfc.registry import HeaderParameter

    return HeaderParameter("x", "str")


def test_a_public_key_is_no_secret_key() -> None:
    """The old confusion: a token signed by HMAC with the public key's text as the secret."""
    said = f"{encoded({'alg': 'HS256', 'kid': 'rsa'})}.{encoded(CLAIMS)}"
    signature = hmac.digest(RSA.as_pem(private=False), said.encode(), "sha256")
    with pytest.raises(InvalidToken, match="not signed by one of"):
        key_set(RSA).claims(f"{said}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_keys_that_are_left_out() -> None:
    others = [
        SECRET.as_dict(),
        {"kty": "OKP"},
        {"kty": ["RSA"]},
        {"kty": "EC", "crv": "P-256"},
        7,
        {**EC.as_dict(private=False), "use": "enc"},
        RSAKey.generate_key(1024, {"kid": "weak"}).as_dict(private=False),
    ]
    keys = KeySet()
    keys.replace(json.dumps({"keys": [*others, RSA.as_dict(private=False)]}).encode())
    assert len(keys) == 1
    assert keys.knows("rsa")
    assert not keys.knows("ec")
    assert repr(keys) == "<KeySet of 1 keys>"


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b"[" * 100_000, document(SECRET)],
    ids=["empty", "HTML", "list", "object", "number", "no keys", "deep nesting", "HMAC key"],
)
def test_an_answer_that_is_not_a_key_set_keeps_the_old_keys(answer: bytes) -> None:
    keys = key_set(EC)
    with pytest.raises(ValueError, match=r"is not a JSON document|has no RSA or EC key"):
        keys.replace(answer)
    assert keys.claims(signed(EC, "ES256"))["sub"] == "alice"


def test_a_new_document_takes_the_place_of_the_old_one() -> None:
    keys = key_set(EC)
    keys.replace(document(RSA))
    with pytest.raises(InvalidToken):
        keys.claims(signed(EC, "ES256"))


def test_a_key_that_is_not_in_the_set_is_asked_for() -> None:
    asked: list[str] = []
    validate = TokenValidator(key_set(RSA, EC), ClaimRules(), lambda: NOW_S * 1000, asked.append)
    for key_id in ("unknown", "rsa", "ec"):
        with pytest.raises(InvalidToken):
            validate(signed(OTHER_EC, "ES256", kid=key_id))
    with pytest.raises(InvalidToken):
        validate(signed(OTHER_EC, "ES256"))
    assert asked == ["unknown"]


def test_parts_of_a_token() -> None:
    token = signed(EC, "ES256", kid="ec")
    assert (json_part(token, 0)["kid"], json_part(token, 1)["sub"]) == ("ec", "alice")


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc.jwk", None)
    with pytest.raises(SecuritySettingError, match=r"needs joserfc: .* -m pip install "):
        KeySet()
