"""Java's settings of TLS and SASL for librdkafka's, so that a file that was written for a client of librdkafka serves our commands.

    librdkafka                                         Java
    sasl.mechanisms                                    sasl.mechanism
    sasl.username, sasl.password                       sasl.jaas.config, with the module of PLAIN or SCRAM
    ssl.ca.location, a file                            ssl.truststore.location of type PEM
    ssl.ca.location=probe                              no trust store: the system's certificates
    ssl.ca.pem                                         ssl.truststore.certificates
    ssl.certificate.location or .pem,
    ssl.key.location or .pem                           ssl.keystore.certificate.chain, ssl.keystore.key
    ssl.endpoint.identification.algorithm=none         the same, empty
    enable.ssl.certificate.verification=true           what Java does always

- A name of Java's in the same file comes first: then the file serves both kinds of client, and librdkafka's name is for the others.
- A name of librdkafka's alone that has no counterpart is an error that names the setting to use. Nothing that would protect is left out
  without a word. In plain text (`security.protocol`) none means anything.

Source: CONFIGURATION.md of librdkafka; Kafka's `SslConfigs`, `SaslConfigs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.security.client_security import MECHANISM, PROTOCOL
from barnabas.security.jaas import SASL_JAAS_CONFIG
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.printable import printable

__all__ = ["java_settings"]

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NAMES = "ssl.endpoint.identification.algorithm"
_VERIFIES = "enable.ssl.certificate.verification"
_BEARER = "sasl.jaas.config with the options clientId, clientSecret and scope, and sasl.oauthbearer.token.endpoint.url"
_OF_TLS = {
    "ssl.ca.certificate.stores": "use ssl.truststore.location",
    "ssl.crl.location": "there are no revocation lists here",
    "ssl.curves.list": "OpenSSL chooses the curves",
    "ssl.engine.id": "keys come from ssl.keystore.location",
    "ssl.engine.location": "keys come from ssl.keystore.location",
    "ssl.providers": "keys come from ssl.keystore.location",
    "ssl.sigalgs.list": "OpenSSL chooses the algorithms",
}
_OF_SASL = {
    "enable.sasl.oauthbearer.unsecure.jwt": f"use {_BEARER}",
    "sasl.kerberos.keytab": "GSSAPI (Kerberos) is not supported",
    "sasl.kerberos.principal": "GSSAPI (Kerberos) is not supported",
    "sasl.oauthbearer.assertion.jwt.template.file": f"use {_BEARER}",
    "sasl.oauthbearer.assertion.private.key.pem": f"use {_BEARER}",
    "sasl.oauthbearer.client.id": f"use {_BEARER}",
    "sasl.oauthbearer.client.secret": f"use {_BEARER}",
    "sasl.oauthbearer.config": f"use {_BEARER}",
    "sasl.oauthbearer.extensions": "use sasl.jaas.config with options extension_NAME",
    "sasl.oauthbearer.grant.type": f"use {_BEARER}",
    "sasl.oauthbearer.metadata.authentication.type": f"use {_BEARER}",
    "sasl.oauthbearer.method": f"use {_BEARER}",
}
"""Names without a counterpart, and what to do."""


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a file's settings, with Java's names added for those of librdkafka.

    Raises:
        SecuritySettingError: one has no counterpart, or its file cannot be read; the text has no secret.
    """
    found = dict(settings)
    protocol = settings.get(PROTOCOL, "").strip().upper()
    if protocol.endswith("SSL"):
        _refuse(settings, _OF_TLS)
        _add_trust(found)
        _add_key(found)
    if protocol.startswith("SASL"):
        _refuse(settings, _OF_SASL)
        _add_login(found)
    return found


def _refuse(settings: Mapping[str, str], without: Mapping[str, str]) -> None:
    for name, remedy in without.items():
        if settings.get(name):
            raise SecuritySettingError(name, f"is a setting of librdkafka's that barnabas does not have: {remedy}")


def _add_trust(found: dict[str, str]) -> None:
    verifies = found.get(_VERIFIES, "true").lower()
    if verifies not in ("true", "t", "1"):
        raise SecuritySettingError(
            _VERIFIES, "certificates are verified always: name the authority in ssl.truststore.location, in PEM"
        )
    if found.get(_NAMES, "").lower() == "none":
        found[_NAMES] = ""
    if any(name.startswith("ssl.truststore.") for name in found):
        return
    location, text = found.get("ssl.ca.location", ""), found.get("ssl.ca.pem", "")
    if text:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text}
    elif location and location != "probe":
        if Path(location).is_dir():
            raise SecuritySettingError(
                "ssl.ca.location", f"{printable(location)} is a directory: name one file, as in ssl.truststore.location"
            )
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text("ssl.ca.location", location)}


def _add_key(found: dict[str, str]) -> None:
    """Add the key and its certificates; `ssl.keystore.location` and `ssl.key.password` are called alike in both."""
    if any(name.startswith("ssl.keystore.") for name in found):
        return
    given = {}
    for own, java in (("ssl.key", "ssl.keystore.key"), ("ssl.certificate", "ssl.keystore.certificate.chain")):
        text, location = found.get(f"{own}.pem"), found.get(f"{own}.location")
        if text:
            given[java] = text
        elif location:
            given[java] = _text(f"{own}.location", location)
    if given:
        found |= {"ssl.keystore.type": "PEM", **given}


def _add_login(found: dict[str, str]) -> None:
    if MECHANISM not in found and found.get("sasl.mechanisms"):
        found[MECHANISM] = found["sasl.mechanisms"]
    user, password = found.get("sasl.username"), found.get("sasl.password")
    if SASL_JAAS_CONFIG in found or not (user or password):
        return
    for name, value in (("sasl.username", user), ("sasl.password", password)):
        if not value:
            raise SecuritySettingError(name, f"is missing; or use {SASL_JAAS_CONFIG}, as Java's clients do")
    assert user is not None
    assert password is not None
    module = _PLAIN if found.get(MECHANISM) == "PLAIN" else _SCRAM
    found[SASL_JAAS_CONFIG] = f"{module} required username={_quoted(user)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    return f'"{"".join(_ESCAPES.get(each, each) for each in text)}"'


def _text(setting: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SecuritySettingError(setting, f"cannot read {printable(path)}: {error.strerror or error}") from None
