"""Key and trust stores that take the place of others while a node runs: which may, and Kafka's words for those that may not.

    settings ─► stores are read ─► same subject and names? ─► verifiable by each other? ─► the context of the next connection

- The settings are those of `RELOADABLE`, of one listener: `listener.name.NAME.ssl.keystore.location`.
- A certificate keeps its subject and its alternative names, unless `ssl.allow.dn.changes` or `ssl.allow.san.changes` is true.
- No listener gets its first trust store, or loses its key store.
- On the listener between brokers old and new stores must trust each other: the brokers change one after the other. A client with the one
  and a server with the other shake hands here, both ways round.

Deviation: Kafka looks at a key and its certificate when a connection uses them; here they must belong together.

Source: Kafka's `SslFactory.createNewSslEngineFactory`, `SslEngineValidator`, `SslConfigs.RECONFIGURABLE_CONFIGS`; KIP-226.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.security.certificate_entries import CertificateEntry, certificate_entry, why_incompatible
from barnabas.security.key_stores import KeyStore
from barnabas.security.pem_blocks import pem_blocks
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import client_context, client_stores, server_stores

__all__ = ["LOCATIONS", "LoadedStores", "StoresRejected", "loaded_stores", "renewed_stores"]

LOCATIONS = ("ssl.keystore.location", "ssl.truststore.location")

_CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"
_INVALID = "org.apache.kafka.common.errors.InvalidConfigurationException"
_HANDSHAKE = "javax.net.ssl.SSLHandshakeException"
_KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"


class StoresRejected(ValueError):
    """Stores may not be used. The text is one line without secrets.

    Attributes:
        answer: Kafka's answer to a request for them.
    """

    def __init__(self, exception: str, words: str) -> None:
        super().__init__(words)
        self.answer = (
            f"Invalid value {_CONFIG_EXCEPTION}: Validation of dynamic config update of SSLFactory failed: "
            f"{exception}: {words} for configuration Invalid dynamic configuration"
        )


@dataclass(frozen=True, slots=True)
class LoadedStores:
    """The stores of one listener, as they were read.

    Attributes:
        context: of its connections, or of those to it.
        entry: the certificate; None for a client without a key.
        has_trust: whether there is a trust store.
        peers: server's and client's context of a listener between brokers, for the check of its next stores.
    """

    context: ssl.SSLContext = field(repr=False)
    entry: CertificateEntry | None
    has_trust: bool
    peers: tuple[ssl.SSLContext, ssl.SSLContext] | None = field(default=None, repr=False)


def loaded_stores(settings: Mapping[str, str], *, is_server: bool, is_between: bool = False) -> LoadedStores:
    """Read the stores of a listener's settings.

    Args:
        settings: Java's names without a prefix.
        is_server: for the connections that the listener accepts; else for those that a node dials.
        is_between: whether brokers reach each other by it.

    Raises:
        SecuritySettingError: a setting cannot be used.
    """
    stores = server_stores(settings) if is_server else client_stores(settings)
    peers = None
    if is_server and is_between:
        peers = (stores.context, client_context({**settings, "ssl.endpoint.identification.algorithm": ""}))
    return LoadedStores(stores.context, _entry_of(stores.own), stores.has_trust, peers)


def renewed_stores(
    settings: Mapping[str, str], old: LoadedStores, *, is_server: bool, is_between: bool = False
) -> LoadedStores:
    """Read the stores that shall take the place of others. Arguments as of `loaded_stores`.

    Raises:
        StoresRejected: they may not.
    """
    try:
        new = loaded_stores(settings, is_server=is_server, is_between=is_between)
    except SecuritySettingError as error:
        raise _unreadable(error, settings) from None
    if why := _why_not(new, old, settings):
        raise StoresRejected(_CONFIG_EXCEPTION, why)
    if new.peers is not None and old.peers is not None:
        for server, client in ((old.peers[0], new.peers[1]), (new.peers[0], old.peers[1])):
            if why := _why_no_handshake(server, client):
                raise StoresRejected(_HANDSHAKE, f"old and new stores do not trust each other ({why})")
    return new


def _why_not(new: LoadedStores, old: LoadedStores, settings: Mapping[str, str]) -> str:
    if old.entry is None and new.entry is not None:
        return "Cannot add SSL keystore to an existing listener for which no keystore was configured."
    if old.entry is not None and new.entry is None:
        return "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
    if old.entry is not None and new.entry is not None:
        why = why_incompatible(
            new.entry,
            old.entry,
            may_change_subject=_is_true(settings, "ssl.allow.dn.changes"),
            may_change_alt_names=_is_true(settings, "ssl.allow.san.changes"),
        )
        if why:
            return why
    if new.has_trust and not old.has_trust:
        return "Cannot add SSL truststore to an existing listener for which no truststore was configured."
    return ""


def _is_true(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").strip().lower() == "true"


def _entry_of(own: KeyStore | None) -> CertificateEntry | None:
    if own is None:
        return None
    first = next(pem_blocks(own.chain))
    try:
        return certificate_entry(own.alias, first.der)
    except ValueError:
        raise SecuritySettingError(own.setting, "the certificate of the private key cannot be read") from None


def _unreadable(error: SecuritySettingError, settings: Mapping[str, str]) -> StoresRejected:
    """Return Kafka's words for a store that cannot be read, with the reason behind them."""
    place = "truststore" if ".truststore." in error.setting else "keystore"
    location, kind = settings.get(f"ssl.{place}.location"), settings.get(f"ssl.{place}.type") or "JKS"
    if location is None:
        return StoresRejected(_INVALID, f"Invalid PEM {place} configs ({error})")
    if kind.upper() == "PEM":
        return StoresRejected(_INVALID, f"Failed to load PEM SSL keystore {location} ({error})")
    return StoresRejected(_KAFKA_EXCEPTION, f"Failed to load SSL keystore {location} of type {kind} ({error})")


def _why_no_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """Have a client and a server shake hands; return why they cannot, empty if they can."""
    try:
        accepting, dialling = TlsLayer(server, is_server=True), TlsLayer(client, is_server=False)
        while data := dialling.to_send():
            accepting.received(data)
            if data := accepting.to_send():
                dialling.received(data)
    except ssl.SSLError as error:
        return (error.reason or str(error)).replace("_", " ").lower()
    return "" if accepting.is_established and dialling.is_established else "the handshake does not end"
