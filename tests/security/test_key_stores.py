"""Key stores and trust stores, and each mistake in their settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.security.key_stores import STORE_BYTES_MAX, key_store, trusted_certificates
from barnabas.security.pem_blocks import pem_blocks
from barnabas.security.setting_error import SecuritySettingError
from tests.security.certificates import authority, node

PASSWORD = "marker-secret"


@pytest.fixture
def p12(tmp_path: Path) -> Path:
    path = tmp_path / "node.p12"
    path.write_bytes(node().pkcs12(PASSWORD))
    return path


@pytest.fixture
def trust_p12(tmp_path: Path) -> Path:
    path = tmp_path / "trust.p12"
    path.write_bytes(authority().trust_store(PASSWORD))
    return path


def ders(text: str) -> list[bytes]:
    return [block.der for block in pem_blocks(text)]


def error_of(settings: dict[str, str], *, trust: bool = False) -> str:
    with pytest.raises(SecuritySettingError) as raised:
        trusted_certificates(settings) if trust else key_store(settings)
    text = str(raised.value)
    assert PASSWORD not in text
    assert "\n" not in text
    assert raised.value.__cause__ is None
    return text


def test_without_settings_there_is_none() -> None:
    assert key_store({}) is None
    assert trusted_certificates({}) is None


def test_pem_in_settings_and_in_a_file_are_alike(tmp_path: Path) -> None:
    file = tmp_path / "node.pem"
    file.write_text(node().certificate + node().key)
    inline = key_store(node().settings())
    stored = key_store({"x.ssl.keystore.type": "PEM", "x.ssl.keystore.location": str(file)}, "x.")
    assert inline is not None
    assert stored is not None
    assert (inline.key, inline.chain) == (stored.key, stored.chain) == (node().key, node().certificate)
    assert (inline.setting, stored.setting) == ("ssl.keystore.key", "x.ssl.keystore.location")


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "pkcs12", None])
def test_a_pkcs12_file_loads_under_both_types(p12: Path, kind: str | None) -> None:
    settings = {"ssl.keystore.location": str(p12), "ssl.keystore.password": PASSWORD}
    store = key_store(settings if kind is None else settings | {"ssl.keystore.type": kind})
    assert store is not None
    assert ders(store.key) == ders(node().key)
    assert ders(store.chain) == ders(node().certificate) + ders(authority().certificate)


def test_a_trust_store_without_a_key(trust_p12: Path) -> None:
    trusted = trusted_certificates({"ssl.truststore.location": str(trust_p12), "ssl.truststore.password": PASSWORD})
    assert trusted == authority().certificate


def test_of_a_key_store_java_trusts_the_own_certificate_alone(p12: Path) -> None:
    trusted = trusted_certificates({"ssl.truststore.location": str(p12), "ssl.truststore.password": PASSWORD})
    assert trusted == node().certificate


def test_a_repr_has_no_secret() -> None:
    store = key_store(node().settings() | {"ssl.key.password": PASSWORD})
    assert repr(store) == "KeyStore(setting='ssl.keystore.key')"


MISTAKES = {
    "key-without-chain": (("key",), "ssl.keystore.certificate.chain: is missing: ssl.keystore.key needs it"),
    "chain-without-key": (
        ("certificate.chain",),
        "ssl.keystore.key: is missing: ssl.keystore.certificate.chain needs it",
    ),
}


@pytest.mark.parametrize(("kept", "error"), MISTAKES.values(), ids=list(MISTAKES))
def test_half_a_store_is_an_error(kept: tuple[str, ...], error: str) -> None:
    settings = {f"ssl.keystore.{name}": node().settings()[f"ssl.keystore.{name}"] for name in ("type", *kept)}
    assert error_of(settings) == error


def test_settings_that_exclude_each_other() -> None:
    inline = node().settings()
    assert "must be PEM: set ssl.keystore.type=PEM" in error_of(inline | {"ssl.keystore.type": "JKS"})
    assert "excludes ssl.keystore.location" in error_of(inline | {"ssl.keystore.location": "x"})
    assert error_of(inline | {"ssl.keystore.password": PASSWORD}).startswith("ssl.keystore.password: cannot be used")
    assert error_of({"ssl.keystore.password": PASSWORD}).startswith("ssl.keystore.password: cannot be used")
    assert error_of({"ssl.truststore.password": PASSWORD}, trust=True).startswith("ssl.truststore.password: cannot")
    assert error_of({"ssl.keystore.type": "BCFKS"}).startswith("ssl.keystore.type: 'BCFKS' is not a type")


def test_files_that_are_not_there_or_something_else(tmp_path: Path, p12: Path) -> None:
    absent = tmp_path / "absent.p12"
    at = {"ssl.keystore.location": str(absent), "ssl.keystore.password": PASSWORD}
    assert error_of(at) == f"ssl.keystore.location: cannot read {absent}: No such file or directory"
    assert error_of(at | {"ssl.keystore.location": ""}) == "ssl.keystore.location: is empty"
    assert error_of(at | {"ssl.keystore.location": str(tmp_path)}).endswith("Is a directory")
    absent.write_bytes(b"something else")
    assert error_of(at).endswith("ssl.keystore.password is wrong, or it is not a PKCS12 store")
    absent.write_text(node().certificate)
    assert error_of(at).endswith("is a PEM file: set ssl.keystore.type=PEM")
    pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(absent)}
    assert error_of(pem).endswith("has no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    absent.write_text(node().key)
    assert error_of(pem).endswith("has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    assert error_of(pem | {"ssl.keystore.location": str(p12)}).endswith(
        "is not a PEM file: set ssl.keystore.type=PKCS12"
    )
    with absent.open("wb") as file:
        file.truncate(STORE_BYTES_MAX + 1)
    assert "larger than 16 MiB" in error_of(at)


def test_a_wrong_password_is_one_line(p12: Path) -> None:
    settings = {"ssl.keystore.location": str(p12), "ssl.keystore.password": "wrong-" + PASSWORD}
    assert error_of(settings) == (
        f"ssl.keystore.location: {p12} cannot be opened: ssl.keystore.password is wrong, or it is not a PKCS12 store"
    )
    assert error_of(settings | {"ssl.key.password": PASSWORD}).startswith("ssl.key.password: differs")
    del settings["ssl.keystore.password"]
    assert error_of(settings) == f"ssl.keystore.password: is missing, and {p12} is not read without it"


@pytest.mark.parametrize(("magic", "kind"), [("feedfeed", "JKS"), ("cececece", "JCEKS")])
@pytest.mark.parametrize("trust", [False, True])
def test_javas_own_format_is_refused_with_the_line_that_converts_it(
    tmp_path: Path, magic: str, kind: str, trust: bool
) -> None:
    store = tmp_path / "my node.jks"
    store.write_bytes(bytes.fromhex(magic) + bytes(20))
    name = "ssl.truststore" if trust else "ssl.keystore"
    error = error_of({f"{name}.location": str(store), f"{name}.password": PASSWORD}, trust=trust)
    new = tmp_path / "my node.p12"
    assert error.endswith(
        f"keytool -importkeystore -srckeystore '{store}' -srcstoretype {kind} -destkeystore '{new}' -deststoretype PKCS12"
    )


def test_a_trust_store_in_pem() -> None:
    trusted = authority().settings()
    assert trusted_certificates(trusted) == authority().certificate
    in_one_line = trusted | {"ssl.truststore.certificates": authority().certificate.replace("\n", " ")}
    assert trusted_certificates(in_one_line) == authority().certificate
    empty = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "no certificate"}
    assert "has no certificate in PEM" in error_of(empty, trust=True)
    damaged = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
    }
    assert "its text is not valid PEM" in error_of(damaged, trust=True)


def test_an_encrypted_key_needs_its_password() -> None:
    settings = node().settings() | {"ssl.keystore.key": node().encrypted_key(PASSWORD)}
    assert error_of(settings) == "ssl.keystore.key: the private key of its text is encrypted: set ssl.key.password"
    assert key_store(settings | {"ssl.key.password": PASSWORD}) is not None
