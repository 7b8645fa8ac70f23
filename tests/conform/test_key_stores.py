"""Stores that Java's keytool writes, and our own read by it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from barnabas.security.certificate_names import certificate_name
from barnabas.security.key_stores import key_store, trusted_certificates
from barnabas.security.pem_blocks import pem_blocks
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_settings import client_context, server_context
from tests.security.certificates import authority, node
from tests.security.tls_pair import TlsPair

pytestmark = pytest.mark.conform

PASSWORD = "secret-of-the-store"
JAVA_8 = ["-J-Dkeystore.pkcs12.legacy"]


def keytool(*arguments: str) -> str:
    done = subprocess.run(["keytool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def new_key(store: Path, *more: str) -> None:
    keytool(
        "-genkeypair", "-keystore", str(store), "-storepass", PASSWORD, "-alias", "node", "-keyalg", "RSA",
        "-dname", "CN=localhost, OU=brokers", "-ext", "san=dns:localhost", *more,
    )  # fmt: skip


def settings(kind: str, store: Path) -> dict[str, str]:
    return {f"ssl.{kind}store.location": str(store), f"ssl.{kind}store.password": PASSWORD}


@pytest.mark.parametrize("java_8", [False, True])
def test_a_key_and_its_trust_store_as_java_writes_them(tmp_path: Path, java_8: bool) -> None:
    more = JAVA_8 if java_8 else []
    keys, trust, exported = tmp_path / "node.p12", tmp_path / "trust.p12", tmp_path / "node.crt"
    new_key(keys, "-storetype", "PKCS12", *more)
    at = ["-storepass", PASSWORD, "-alias", "node", "-file", str(exported)]
    keytool("-exportcert", "-keystore", str(keys), *at)
    keytool("-importcert", "-noprompt", "-keystore", str(trust), "-storetype", "PKCS12", *at, *more)
    pair = TlsPair(client_context(settings("trust", trust)), server_context(settings("key", keys)))
    pair.exchange()
    shown = pair.client.peer_certificate()
    assert shown is not None
    assert certificate_name(shown) == "CN=localhost,OU=brokers"


def test_a_jks_store_is_read_after_the_line_that_its_error_has(tmp_path: Path) -> None:
    store = tmp_path / "node.jks"
    new_key(store, "-storetype", "JKS", "-keypass", PASSWORD)
    with pytest.raises(SecuritySettingError) as raised:
        key_store(settings("key", store))
    line = str(raised.value).partition("convert it with: ")[2].split()
    assert line[0] == "keytool"
    keytool(*line[1:], "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    assert server_context(settings("key", tmp_path / "node.p12"))


def test_a_trusted_entry_next_to_a_key_is_trusted_and_the_rest_of_its_chain_is_not(tmp_path: Path) -> None:
    store, file = tmp_path / "node.p12", tmp_path / "other.pem"
    store.write_bytes(node().pkcs12(PASSWORD))
    other = authority().issue("CN=other")
    file.write_text(other.certificate)
    keytool(
        "-importcert", "-noprompt", "-keystore", str(store), "-storepass", PASSWORD, "-alias", "x", "-file", str(file)
    )
    trusted = trusted_certificates(settings("trust", store)) or ""
    names = sorted(certificate_name(block.der) for block in pem_blocks(trusted))
    assert names == ["CN=localhost", "CN=other"]


def test_java_reads_our_stores(tmp_path: Path) -> None:
    keys, trust = tmp_path / "keys.p12", tmp_path / "trust.p12"
    keys.write_bytes(node().pkcs12(PASSWORD))
    trust.write_bytes(authority().trust_store(PASSWORD))
    listed = keytool("-list", "-v", "-keystore", str(keys), "-storepass", PASSWORD)
    assert "Entry type: PrivateKeyEntry" in listed
    assert "Certificate chain length: 2" in listed
    assert "trustedCertEntry" in keytool("-list", "-keystore", str(trust), "-storepass", PASSWORD)
