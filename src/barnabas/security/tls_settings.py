"""Contexts of TLS, for a client and for a listener, from Java's settings `ssl.*`.

- Versions are TLS 1.2 and 1.3. Older ones in `ssl.enabled.protocols` are left out, as the JDK leaves them out today.
- `ssl.protocol` bounds a client's versions, as in the JDK; `TLS` and `TLSv1.3` bound nothing.
- A server's certificate is verified always, its name unless `ssl.endpoint.identification.algorithm` is empty.
- As in Java each certificate in a trust store is trusted by itself, whether or not it is a root. Without a trust store the system's
  certificates are trusted.
- A setting with a meaning that Python's TLS cannot give it is an error: `ssl.provider`, `ssl.engine.factory.class`.

Deviation: OpenSSL does not accept a root that has expired; Java does not look at a root's dates.

Source: Kafka's `SslConfigs`, `DefaultSslEngineFactory`; KIP-651.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.security.cipher_suites import cipher_suites
from barnabas.security.key_stores import KeyStore, key_store, trusted_certificates
from barnabas.security.memory_files import path_of
from barnabas.security.setting_error import SecuritySettingError

__all__ = ["TlsStores", "client_context", "client_stores", "server_context", "server_stores"]

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_NOT_HERE = {
    "ssl.engine.factory.class": "barnabas has no other engine: remove it",
    "ssl.provider": "barnabas has one provider, OpenSSL: remove it",
}


class TlsStores(NamedTuple):
    """A context, and the stores that it was made of.

    Attributes:
        own: None for a client without a key.
        has_trust: whether there is a trust store; without one the system's certificates are trusted.
    """

    context: ssl.SSLContext
    own: KeyStore | None
    has_trust: bool


def client_context(settings: Mapping[str, str], prefix: str = "") -> ssl.SSLContext:
    """Return the context of connections that a client makes.

    Args:
        settings: Java's names, each after the prefix; other names are not looked at.

    Raises:
        SecuritySettingError: a setting cannot be used.
    """
    return client_stores(settings, prefix).context


def server_context(settings: Mapping[str, str], prefix: str = "") -> ssl.SSLContext:
    """Return the context of connections that a listener accepts.

    Raises:
        SecuritySettingError: a setting cannot be used, or there is no key store.
    """
    return server_stores(settings, prefix).context


def client_stores(settings: Mapping[str, str], prefix: str = "") -> TlsStores:
    """Return a client's context with its stores, as of now. Raises as `client_context`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _checks_names(settings, prefix)
    context.verify_mode = ssl.CERT_REQUIRED
    _choose_versions(context, settings, prefix, is_client=True)
    has_trust = _trust(context, settings, prefix)
    own = key_store(settings, prefix)
    if own is not None:
        _load_key(context, own, prefix)
    return TlsStores(context, own, has_trust)


def server_stores(settings: Mapping[str, str], prefix: str = "") -> TlsStores:
    """Return a listener's context with its stores, as of now. Raises as `server_context`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    written = settings.get(f"{prefix}ssl.client.auth", "none")
    if written not in _CLIENT_AUTH:
        raise SecuritySettingError(f"{prefix}ssl.client.auth", f"{written!r} is not one of {', '.join(_CLIENT_AUTH)}")
    context.verify_mode = _CLIENT_AUTH[written]
    _choose_versions(context, settings, prefix, is_client=False)
    has_trust = _trust(context, settings, prefix)
    own = key_store(settings, prefix)
    if own is None:
        raise SecuritySettingError(
            f"{prefix}ssl.keystore.location", "is missing: a TLS listener needs a key and its certificate"
        )
    _load_key(context, own, prefix)
    return TlsStores(context, own, has_trust)


def _checks_names(settings: Mapping[str, str], prefix: str) -> bool:
    written = settings.get(f"{prefix}ssl.endpoint.identification.algorithm", "https").strip()
    if written.lower() not in ("", "https"):
        raise SecuritySettingError(
            f"{prefix}ssl.endpoint.identification.algorithm",
            f"{written!r} is not https, nor empty for no check of names",
        )
    return bool(written)


def _choose_versions(context: ssl.SSLContext, settings: Mapping[str, str], prefix: str, *, is_client: bool) -> None:
    for name, why in _NOT_HERE.items():
        if settings.get(prefix + name):
            raise SecuritySettingError(prefix + name, why)
    enabled = _enabled_versions(settings, prefix, is_client=is_client)
    suites = _names(settings, f"{prefix}ssl.cipher.suites")
    if suites:
        try:
            chosen = cipher_suites(suites)
            if chosen.of_tls_12:
                context.set_ciphers(":".join(chosen.of_tls_12))
        except ValueError as error:
            raise SecuritySettingError(f"{prefix}ssl.cipher.suites", str(error)) from None
        except ssl.SSLError:
            raise SecuritySettingError(
                f"{prefix}ssl.cipher.suites", "this system's OpenSSL has none of these suites"
            ) from None
        possible = {"TLSv1.2"} if chosen.of_tls_12 else set()
        possible |= {"TLSv1.3"} if chosen.with_tls_13 else set()
        enabled = [name for name in enabled if name in possible]
        if not enabled:
            raise SecuritySettingError(f"{prefix}ssl.cipher.suites", "has no suite of the versions that are enabled")
    context.minimum_version = _VERSIONS[min(enabled)]
    context.maximum_version = _VERSIONS[max(enabled)]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION


def _enabled_versions(settings: Mapping[str, str], prefix: str, *, is_client: bool) -> list[str]:
    name = f"{prefix}ssl.enabled.protocols"
    written = _names(settings, name) or list(_VERSIONS)
    for version in written:
        if version not in _VERSIONS and version not in _OLD_VERSIONS:
            raise SecuritySettingError(name, f"{version!r} is not a version of TLS: {', '.join(_VERSIONS)}")
    protocol = settings.get(f"{prefix}ssl.protocol", "TLSv1.3")
    if protocol not in ("TLS", *_VERSIONS):
        raise SecuritySettingError(f"{prefix}ssl.protocol", f"{protocol!r} is not one of TLS, {', '.join(_VERSIONS)}")
    highest = protocol if is_client and protocol in _VERSIONS else max(_VERSIONS)
    enabled = [version for version in written if version in _VERSIONS and version <= highest]
    if not enabled:
        raise SecuritySettingError(name, f"{','.join(written)} leaves neither TLSv1.2 nor TLSv1.3")
    return enabled


def _names(settings: Mapping[str, str], name: str) -> list[str]:
    """Return the members of a list."""
    return [each for part in settings.get(name, "").split(",") if (each := part.strip())]


def _trust(context: ssl.SSLContext, settings: Mapping[str, str], prefix: str) -> bool:
    """Have the context trust what the settings name; return whether they name a trust store."""
    certificates = trusted_certificates(settings, prefix)
    if certificates is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if context.protocol == ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH
        )
        return False
    try:
        context.load_verify_locations(cadata=certificates)
    except ssl.SSLError as error:
        is_inline = settings.get(f"{prefix}ssl.truststore.certificates") is not None
        place = "certificates" if is_inline else "location"
        file = "" if is_inline else f"{settings.get(f'{prefix}ssl.truststore.location')}: "
        raise SecuritySettingError(
            f"{prefix}ssl.truststore.{place}", f"{file}a certificate is not valid ({error.reason})"
        ) from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Java accepts what it forbids.
    return True


def _load_key(context: ssl.SSLContext, own: KeyStore, prefix: str) -> None:
    """Give OpenSSL the key. A password is always passed, or OpenSSL would ask for it on the terminal."""
    try:
        with path_of(own.chain.encode()) as chain, path_of(own.key.encode()) as key:
            context.load_cert_chain(chain, key, password=own.key_password or "")
    except (OSError, ValueError) as error:  # SSLError is one; a ValueError is a password of more than 1,024 bytes.
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            why = "the certificate is not that of the private key: the chain must begin with the key's own"
        elif own.key_password is not None:
            why = f"the private key or a certificate cannot be read: {prefix}ssl.key.password is wrong, or they are damaged"
        elif reason in ("EE_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL"):
            why = f"OpenSSL finds the certificate too weak ({reason})"
        else:
            why = "the private key or a certificate cannot be read: they are damaged"
        raise SecuritySettingError(own.setting, why) from None
