"""The keys of SCRAM: those of the RFCs, and those of users that do not exist."""

from __future__ import annotations

import base64
import hashlib
import os

import pytest

from barnabas.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    credential_of_password,
    made_up_credential,
    new_salt,
)

SHA_256 = ScramMechanism.SCRAM_SHA_256


def test_mechanisms_have_kafkas_names_and_numbers() -> None:
    assert [(one.label, one.number) for one in ScramMechanism] == [("SCRAM-SHA-256", 1), ("SCRAM-SHA-512", 2)]
    assert ScramMechanism.of("SCRAM-SHA-512") is ScramMechanism.SCRAM_SHA_512
    assert ScramMechanism.of("SCRAM-SHA-1") is None


def test_the_keys_of_the_example_in_rfc_7677() -> None:
    """User `user`, password `pencil`; the stored key is checked through the RFC's proof in `test_scram_server`."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = credential_of_password(SHA_256, "pencil", salt, 4096)
    signed = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = SHA_256.hmac(credential.server_key, signed.encode())
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_made_up_credential_stays_and_fits_no_password(mechanism: ScramMechanism) -> None:
    made_up = made_up_credential(mechanism, "mallory", b"secret")
    assert made_up == made_up_credential(mechanism, "mallory", b"secret")
    assert made_up.salt != made_up_credential(mechanism, "other", b"secret").salt
    assert made_up.salt != made_up_credential(mechanism, "mallory", b"another secret").salt
    real = credential_of_password(mechanism, "", new_salt(os.urandom))
    assert len(made_up.stored_key) == len(real.stored_key)
    assert made_up.iterations == real.iterations == 4096


def test_salts_look_alike() -> None:
    """Neither letters nor length tell a made-up salt from those of Kafka's tools."""
    salts = [new_salt(os.urandom) for _ in range(200)]
    made_up = [made_up_credential(SHA_256, f"user-{number}", b"secret").salt for number in range(200)]
    for some in (salts, made_up):
        assert len(set(some)) == 200
        assert {len(salt) for salt in some} <= {23, 24, 25, 26}
        assert set(b"".join(some)) == set(b"0123456789abcdefghijklmnopqrstuvwxyz")


def test_a_password_is_not_prepared() -> None:
    """Kafka hashes the bytes: a composed and a decomposed letter are two passwords, and a soft hyphen counts."""
    keys = {credential_of_password(SHA_256, text, b"salt").stored_key for text in ("\u00e9", "e\u0301", "\u00e9\u00ad")}
    assert len(keys) == 3
    expected = hashlib.pbkdf2_hmac("sha256", "\u00e9".encode(), b"salt", 4096)
    assert SHA_256.hash(SHA_256.hmac(expected, b"Client Key")) in keys


def test_the_repr_has_no_key() -> None:
    assert repr(ScramCredential(b"salt", b"stored", b"server", 4096)) == "<ScramCredential 4096 iterations>"
