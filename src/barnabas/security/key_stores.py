"""Key stores and trust stores: PEM and PKCS12, from a file, or a setting's own text.

    ssl.keystore.type    from                                                              needs cryptography
    PEM                  ssl.keystore.location, or .key and .certificate.chain             no
    PKCS12, JKS          ssl.keystore.location, a PKCS12 file                              yes

As in Java, a PKCS12 file loads under `type=JKS`, which is Kafka's default. A file in the format JKS does not load: its encryption is
Java's own. The error has the line of `keytool` that converts it.

- A key that is encrypted (PKCS8, or the older PEM with `Proc-Type`) stays encrypted here: OpenSSL opens it with `ssl.key.password`.
- A chain of a PKCS12 store is put in order by issuer and subject, the key's own certificate first. Others in the store are not sent.
- A trust store needs no key. If it has one, then as in Java the key's own certificate is trusted, and the rest of its chain is not.
- PKCS12 has no flag that every tool writes for a trusted certificate. A certificate next to a key counts as trusted if it has an alias of
  its own: Java names the members of a chain by their subject.

Left out: several keys in a store (the first one is used), hardware stores (PKCS11), DKS and BCFKS.

Source: RFC 7292; Kafka's `DefaultSslEngineFactory` (`createKeystore`, `createTruststore`), KIP-651.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from barnabas.security.certificate_names import subject_name
from barnabas.security.pem_blocks import PemBlock, pem_blocks, pem_text
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.requirements import install_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

__all__ = ["KeyStore", "key_store", "trusted_certificates"]

STORE_BYTES_MAX = 1 << 24
"""A store is some kilobytes; the JDK's own trust store has 200 KB. A larger file is another file."""

_JKS = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))
_FILE_TYPES = ("PKCS12", "JKS")
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_KEYS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key and its certificates.

    Attributes:
        key: PEM, encrypted or not.
        key_password: None if the key is not encrypted.
        chain: PEM, the key's own certificate first.
        setting: the setting that it comes from, for errors.
        alias: of the key in its store; Kafka's for a key in PEM.
    """

    key: str = field(repr=False)
    key_password: str | None = field(repr=False)
    chain: str = field(repr=False)
    setting: str
    alias: str = field(default="kafka", repr=False)


def key_store(settings: Mapping[str, str], prefix: str = "") -> KeyStore | None:
    """Return the key store of `ssl.keystore.*`; None if there is none.

    Raises: SecuritySettingError.
    """
    store = _Settings(settings, f"{prefix}ssl.keystore.")
    key_password = settings.get(f"{prefix}ssl.key.password")
    key, chain, location = store.get("key"), store.get("certificate.chain"), store.get("location")
    if key is not None:
        store.check_is_pem("key", "a private key")
        if chain is None:
            raise store.error("certificate.chain", f"is missing: {store.name('key')} needs it")
        return _pem_key_store(store, "key", key, chain, key_password)
    if chain is not None:
        raise store.error("key", f"is missing: {store.name('certificate.chain')} needs it")
    if store.type == "PEM" and location is not None:
        store.check_has_no_password(f"only {prefix}ssl.key.password opens a key in PEM")
        text = store.text()
        return _pem_key_store(store, "location", text, text, key_password)
    if location is None:
        store.check_has_no_password(f"{store.name('location')} is missing")
        return None
    data = store.data()
    if store.get("password") is None:
        raise store.error("password", f"is missing, and {location} is not read without it")
    if key_password not in (None, store.get("password")):
        raise SecuritySettingError(
            f"{prefix}ssl.key.password", f"differs from {store.name('password')}, but a PKCS12 store has one password"
        )
    return _pkcs12_key_store(store, data)


def trusted_certificates(settings: Mapping[str, str], prefix: str = "") -> str | None:
    """Return the certificates of `ssl.truststore.*` as PEM; None if there is no trust store, which means the system's.

    Raises: SecuritySettingError.
    """
    store = _Settings(settings, f"{prefix}ssl.truststore.")
    inline, location = store.get("certificates"), store.get("location")
    if inline is not None:
        store.check_is_pem("certificates", "certificates")
        return _certificates(store, "certificates", inline)
    if location is None:
        store.check_has_no_password(f"{store.name('location')} is missing")
        return None
    if store.type == "PEM":
        store.check_has_no_password("a trust store in PEM has none")
        return _certificates(store, "location", store.text())
    return _pkcs12_trust(store, store.data())


class _Settings:
    """The settings of one store, and the words about them."""

    def __init__(self, settings: Mapping[str, str], prefix: str) -> None:
        self._settings = settings
        self._prefix = prefix
        written = settings.get(f"{prefix}type") or "JKS"
        self.type = written.upper()
        if self.type not in ("PEM", *_FILE_TYPES):
            raise self.error(
                "type", f"{written!r} is not a type that barnabas reads: PEM, PKCS12, or JKS for a PKCS12 file"
            )

    def name(self, setting: str) -> str:
        return self._prefix + setting

    def get(self, setting: str) -> str | None:
        return self._settings.get(self._prefix + setting)

    def error(self, setting: str, why: str) -> SecuritySettingError:
        return SecuritySettingError(self.name(setting), why)

    def check_has_no_password(self, why: str) -> None:
        if self.get("password") is not None:
            raise self.error("password", f"cannot be used: {why}")

    def check_is_pem(self, setting: str, thing: str) -> None:
        """Check the settings around a text that stands in a setting itself."""
        if self.type != "PEM":
            raise self.error(setting, f"{thing} in a setting must be PEM: set {self.name('type')}=PEM")
        if self.get("location") is not None:
            raise self.error(setting, f"excludes {self.name('location')}: remove one of them")
        self.check_has_no_password("a store in PEM has none")

    def text(self) -> str:
        """Return the text of a PEM file."""
        data = self._read()
        if data[:4] in _JKS or data[:1] == b"\x30":
            kind = "JKS" if data[:4] in _JKS else "PKCS12"
            raise self.error("location", f"{self.get('location')} is not a PEM file: set {self.name('type')}={kind}")
        return data.decode(errors="replace")

    def data(self) -> bytes:
        """Return the bytes of a PKCS12 file."""
        data, location = self._read(), self.get("location") or ""
        if data[:4] in _JKS:
            kind = "JKS" if data[:4] == _JKS[0] else "JCEKS"
            new = f"{location.removesuffix('.jks')}.p12"
            raise self.error(
                "location",
                f"{location} has Java's format {kind}, which only Java reads; convert it with: keytool -importkeystore "
                f"-srckeystore {quote(location)} -srcstoretype {kind} -destkeystore {quote(new)} -deststoretype PKCS12",
            )
        if b"-----BEGIN " in data:
            raise self.error("location", f"{location} is a PEM file: set {self.name('type')}=PEM")
        return data

    def _read(self) -> bytes:
        location = self.get("location") or ""
        if not location:
            raise self.error("location", "is empty")
        try:
            with Path(location).open("rb") as file:
                data = file.read(STORE_BYTES_MAX + 1)
        except (OSError, ValueError) as error:
            raise self.error(
                "location", f"cannot read {location}: {getattr(error, 'strerror', None) or error}"
            ) from None
        if len(data) > STORE_BYTES_MAX:
            raise self.error("location", f"{location} is larger than {STORE_BYTES_MAX >> 20} MiB, so it is not a store")
        return data

    def place(self, setting: str) -> str:
        """Return the file of a setting, for a sentence; else the setting's own text."""
        return str(self.get("location")) if setting == "location" else "its text"


def _blocks(store: _Settings, setting: str, text: str) -> list[PemBlock]:
    try:
        return list(pem_blocks(text))
    except ValueError as error:
        raise store.error(setting, f"{store.place(setting)} is not valid PEM: {error}") from None


def _certificates(store: _Settings, setting: str, text: str) -> str:
    found = [PemBlock("CERTIFICATE", each.der) for each in _blocks(store, setting, text) if each.label in _CERTIFICATES]
    if not found:
        raise store.error(setting, f"{store.place(setting)} has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return pem_text(found)


def _pem_key_store(store: _Settings, setting: str, key: str, chain: str, password: str | None) -> KeyStore:
    keys = [each for each in _blocks(store, setting, key) if each.label in _KEYS]
    if not keys:
        raise store.error(setting, f"{store.place(setting)} has no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    if keys[0].is_encrypted and password is None:
        raise store.error(setting, f"the private key of {store.place(setting)} is encrypted: set ssl.key.password")
    certificates = _certificates(store, "certificate.chain" if setting == "key" else setting, chain)
    return KeyStore(pem_text(keys[:1]), password, certificates, store.name(setting))


def _open_pkcs12(store: _Settings, data: bytes) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise store.error(
            "location", f"{store.get('location')} needs cryptography: {install_command('security')}; or use PEM"
        ) from None
    password = store.get("password")
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except Exception:  # Any error that the bytes of a foreign file bring about; a password may stand in its message.
        raise store.error(
            "location",
            f"{store.get('location')} cannot be opened: {store.name('password')} is wrong, or it is not a PKCS12 store",
        ) from None


def _pkcs12_key_store(store: _Settings, data: bytes) -> KeyStore:
    opened = _open_pkcs12(store, data)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if opened.key is None or opened.cert is None:
        missing = "private key" if opened.key is None else "certificate of its private key"
        raise store.error("location", f"{store.get('location')} has no {missing}")
    key = opened.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    chain = _chain(opened.cert.certificate, [each.certificate for each in opened.additional_certs])
    alias = "1" if opened.cert.friendly_name is None else opened.cert.friendly_name.decode(errors="replace").lower()
    return KeyStore(key, None, _pem(chain), store.name("location"), alias)


def _pkcs12_trust(store: _Settings, data: bytes) -> str:
    opened = _open_pkcs12(store, data)
    trusted = [each.certificate for each in opened.additional_certs]
    if opened.cert is not None:
        chain = _chain(opened.cert.certificate, trusted)[1:]
        entries = [
            each.certificate
            for each in opened.additional_certs
            if each.certificate not in chain or _has_alias_of_its_own(each.certificate, each.friendly_name)
        ]
        trusted = [opened.cert.certificate, *entries]
    if not trusted:
        raise store.error("location", f"{store.get('location')} has no certificate")
    return _pem(trusted)


def _has_alias_of_its_own(certificate: Certificate, alias: bytes | None) -> bool:
    return alias is not None and alias.decode(errors="replace").lower() != subject_name(certificate).lower()


def _chain(own: Certificate, others: list[Certificate]) -> list[Certificate]:
    """Return a certificate, its issuer, and so on, as far as the store has them."""
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _pem(certificates: list[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return pem_text(PemBlock("CERTIFICATE", each.public_bytes(Encoding.DER)) for each in certificates)
