"""Stores that take the place of others: which may, and Kafka's answer to those that may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.security.dev_certificates import IssuedCertificate
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.store_renewal import LoadedStores, StoresRejected, loaded_stores, renewed_stores
from tests.security.certificates import authority, foreign_authority

HOSTS = ["localhost", "127.0.0.1"]
FRAME = "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of SSLFactory failed: "


def settings(issued: IssuedCertificate | None, trusts: bool = True, **more: str) -> dict[str, str]:
    return {
        **({} if issued is None else issued.settings()),
        **(authority().settings() if trusts else {}),
        **{name.replace("_", "."): text for name, text in more.items()},
    }


OLD = settings(authority().issue("CN=node", hosts=HOSTS))


def rejected(new: dict[str, str], old: dict[str, str] = OLD, **how: Any) -> StoresRejected:
    how = {"is_server": True, **how}
    with pytest.raises(StoresRejected) as caught:
        renewed_stores(new, loaded_stores(old, **how), **how)
    assert caught.value.answer.startswith(FRAME)
    assert caught.value.answer.endswith(" for configuration Invalid dynamic configuration")
    assert "\n" not in caught.value.answer
    return caught.value


def renewed(new: dict[str, str], old: dict[str, str] = OLD, **how: Any) -> LoadedStores:
    how = {"is_server": True, **how}
    loaded = loaded_stores(old, **how)
    found = renewed_stores(new, loaded, **how)
    assert found.context is not loaded.context
    return found


def test_a_certificate_of_the_same_subject_and_names() -> None:
    found = renewed(settings(authority().issue("CN=node", hosts=[*HOSTS, "another.example"])))
    assert found.entry is not None
    assert (2, "another.example") in found.entry.alt_names


def test_another_subject_needs_a_setting() -> None:
    other = authority().issue("CN=other", hosts=HOSTS)
    why = rejected(settings(other))
    assert str(why).startswith("Keystore DistinguishedName does not match:  existing={alias=kafka, DN=CN=node}")
    assert f"{FRAME}org.apache.kafka.common.config.ConfigException: Keystore Dist" in why.answer
    assert renewed(settings(other, ssl_allow_dn_changes="true")).entry is not None


def test_fewer_names_need_a_setting() -> None:
    other = authority().issue("CN=node", hosts=["localhost"])
    assert str(rejected(settings(other))).startswith(
        "Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[[2"
    )
    assert renewed(settings(other, ssl_allow_san_changes="true")).entry is not None


def test_a_key_or_trust_is_neither_first_nor_gone() -> None:
    node = authority().issue("CN=node", hosts=HOSTS)
    first = rejected(settings(node), settings(None), is_server=False)
    assert str(first).startswith("Cannot add SSL keystore to an existing listener")
    gone = rejected(settings(None), OLD, is_server=False)
    assert str(gone).startswith("Cannot remove the SSL keystore from an existing listener")
    trust = rejected(settings(node), settings(node, trusts=False))
    assert str(trust).startswith("Cannot add SSL truststore to an existing listener")
    # As in Kafka, a trust store may go: the system's certificates are trusted then.
    assert not renewed(settings(node, trusts=False)).has_trust


def test_between_brokers_old_and_new_stores_trust_each_other() -> None:
    foreign = foreign_authority().issue("CN=node", hosts=HOSTS)
    why = rejected(settings(foreign), is_between=True)
    assert "certificate verify failed" in str(why)
    assert f"{FRAME}javax.net.ssl.SSLHandshakeException: " in why.answer
    # Towards clients alone that is the administrator's business.
    assert renewed(settings(foreign)).entry is not None
    both = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate + foreign_authority().certificate,
    }
    assert renewed({**OLD, **both}, is_between=True).peers is not None
    assert renewed({**settings(foreign), **both}, {**OLD, **both}, is_between=True).peers is not None


def test_with_client_certificates_the_new_trust_is_asked_too() -> None:
    foreign = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": foreign_authority().certificate}
    rejected({**OLD, **foreign}, is_between=True)
    rejected({**OLD, **foreign, "ssl.client.auth": "required"}, {**OLD, "ssl.client.auth": "required"}, is_between=True)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("PEM", "org.apache.kafka.common.errors.InvalidConfigurationException: Failed to load PEM SSL keystore {} ("),
        ("PKCS12", "org.apache.kafka.common.KafkaException: Failed to load SSL keystore {} of type PKCS12 ("),
    ],
)
def test_a_file_that_is_not_a_store(tmp_path: Path, kind: str, words: str) -> None:
    file = tmp_path / "node.store"
    file.write_text("not a store")
    new = settings(None, ssl_keystore_type=kind, ssl_keystore_location=str(file))
    if kind == "PKCS12":
        new["ssl.keystore.password"] = "hunter2"
    answer = rejected(new).answer
    assert FRAME + words.format(file) in answer
    assert "hunter2" not in answer
    file.unlink()
    assert FRAME + words.format(file) in rejected(new).answer


def test_a_trust_store_that_cannot_be_read() -> None:
    new = {**OLD, "ssl.truststore.certificates": "nothing"}
    assert "Invalid PEM truststore configs (ssl.truststore.certificates: " in rejected(new).answer


def test_a_certificate_of_another_key() -> None:
    node, other = (authority().issue("CN=node", hosts=HOSTS) for _ in range(2))
    new = {**settings(node), "ssl.keystore.certificate.chain": other.certificate}
    assert "the certificate is not that of the private key" in rejected(new).answer


def test_the_first_stores_are_an_error_of_the_setting() -> None:
    with pytest.raises(SecuritySettingError, match=r"ssl\.keystore\.location: is missing"):
        loaded_stores(settings(None), is_server=True)


def test_pkcs12_has_an_alias(tmp_path: Path) -> None:
    node = authority().issue("CN=node", hosts=HOSTS)
    (tmp_path / "node.p12").write_bytes(node.pkcs12("store-secret", alias="Node"))
    stores = settings(
        None,
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=str(tmp_path / "node.p12"),
        ssl_keystore_password="store-secret",
    )
    entry = loaded_stores(stores, is_server=True).entry
    assert entry is not None
    assert entry.alias == "node"
    assert "store-secret" not in repr(loaded_stores(stores, is_server=True))
