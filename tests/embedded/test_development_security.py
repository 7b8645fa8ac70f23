"""The security that a broker makes for itself: files for their owner, settings of clients, and a missing package."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest

from barnabas.embedded.development_security import DevelopmentSecurity
from barnabas.embedded.security_arguments import SecurityArguments
from barnabas.words.requirements import NotInstalled


def made(protocol: str, now_ms: int = 1_800_000_000_000) -> DevelopmentSecurity:
    return DevelopmentSecurity("barnabas.Broker", SecurityArguments(protocol, {"alice": "alice-secret"}), now_ms)


def test_a_client_has_files_and_a_login(tmp_path: Path) -> None:
    folders: list[Path] = []

    def folder() -> Path:
        folders.append(tmp_path / f"clients-{len(folders)}")
        folders[-1].mkdir()
        return folders[-1]

    security = made("SSL")
    found = security.client_settings("alice", "PLAIN", folder)
    assert found == security.client_settings("alice", "SCRAM-SHA-512", folder)
    assert found["security.protocol"] == "SSL"
    assert len(folders) == 1
    ssl.create_default_context(cafile=found["ssl.truststore.location"]).load_cert_chain(found["ssl.keystore.location"])
    assert {path.stat().st_mode & 0o777 for path in folders[0].iterdir()} == {0o600}
    security.forget_folder()
    assert security.client_settings("alice", "PLAIN", folder) != found


def test_admin_is_a_user_of_every_mechanism(tmp_path: Path) -> None:
    security = made("SASL_PLAINTEXT")
    found = security.client_settings("admin", "SCRAM-SHA-256", lambda: tmp_path)
    assert "ssl.truststore.location" not in found
    assert found["sasl.mechanism"] == "SCRAM-SHA-256"
    assert {(user, mechanism) for user, mechanism, *_ in security.scram_credentials()} == {
        (user, mechanism) for user in ("admin", "alice") for mechanism in (1, 2)
    }
    library = security.librdkafka_settings(security.client_settings("alice", "PLAIN", lambda: tmp_path))
    assert (library["sasl.username"], library["sasl.password"]) == ("alice", "alice-secret")


def test_a_user_or_a_mechanism_that_does_not_exist(tmp_path: Path) -> None:
    security = made("SASL_PLAINTEXT")
    with pytest.raises(ValueError, match=r"^there is no user 'bob': the users are admin, alice$"):
        security.client_settings("bob", "PLAIN", lambda: tmp_path)
    with pytest.raises(ValueError, match="mechanism='SCRAM' is not one of PLAIN"):
        security.client_settings("alice", "SCRAM", lambda: tmp_path)


def test_no_secret_is_in_the_text_of_it() -> None:
    assert "secret" not in repr(made("SASL_PLAINTEXT"))


def test_tls_without_cryptography_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(NotInstalled, match=r"^barnabas.Broker\(security='SASL_SSL'\) needs cryptography: .* install "):
        made("SASL_SSL")
    made("SASL_PLAINTEXT")
