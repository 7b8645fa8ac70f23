"""The subject, the alternative names and the end of a certificate: a renewed one must have the same names.

As in Kafka a listener's new certificate has the subject of the old one, and all its alternative names, unless `ssl.allow.dn.changes` or
`ssl.allow.san.changes` is true. More names than before are allowed. Subjects are compared without regard to case and repeated spaces.

    existing={alias=kafka, SAN=[[2, localhost], [7, 127.0.0.1]]}       number of the kind of name (RFC 5280), text

Deviation: names of kinds that Java keeps as bytes (0, 3, 5) are compared; Java finds any two of them different.

Sources: Kafka's `SslFactory.CertificateEntries`; RFC 5280, sections 4.1.2.5 and 4.2.1.6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address

from barnabas.security.certificate_names import certificate_name
from barnabas.security.der import Element, elements, object_identifier
from barnabas.security.hosts import java_address

__all__ = ["CertificateEntry", "certificate_entry", "why_incompatible"]

_SUBJECT_ALT_NAMES = "2.5.29.17"
_VERSION, _EXTENSIONS, _OCTETS, _UTC_TIME = 0xA0, 0xA3, 0x04, 0x17
_TEXTS = (1, 2, 6)
"""Kinds of names that are text: a mail address, a host, a URI."""
_ADDRESS, _IDENTIFIER = 7, 8
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class CertificateEntry:
    """A certificate.

    Attributes:
        alias: of its entry in the store.
        subject: as RFC 2253 writes it.
        alt_names: number of the kind, and text.
        serial: its number.
        last_second: until when it is valid, in epoch seconds.
    """

    alias: str
    subject: str
    alt_names: frozenset[tuple[int, str]]
    serial: int
    last_second: int = 0

    def __str__(self) -> str:
        return f"{self.subject}, serial number {self.serial:x}"


def certificate_entry(alias: str, der: bytes) -> CertificateEntry:
    """Return the entry of a certificate in DER.

    Raises:
        ValueError: it is not a certificate.
    """
    subject = certificate_name(der)
    (certificate,) = elements(der)
    signed = next(elements(certificate.content))
    fields = [each for each in elements(signed.content) if each.tag != _VERSION]
    found: set[tuple[int, str]] = set()
    for field in fields:
        if field.tag == _EXTENSIONS:
            found.update(_alt_names(field))
    # serial, algorithm, issuer, validity, …
    _, end = elements(fields[3].content)
    serial = int.from_bytes(fields[0].content, signed=True)
    return CertificateEntry(alias, subject, frozenset(found), serial, _epoch_seconds(end))


def _epoch_seconds(time: Element) -> int:
    """Return a time of RFC 5280, section 4.1.2.5: two digits of the year, or four, and always UTC."""
    text = time.content.decode("ascii")
    if time.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())


def _alt_names(field: Element) -> list[tuple[int, str]]:
    (extensions,) = elements(field.content)
    for extension in elements(extensions.content):
        identifier, *_, value = elements(extension.content)
        if object_identifier(identifier.content) == _SUBJECT_ALT_NAMES and value.tag == _OCTETS:
            (names,) = elements(value.content)
            return [_alt_name(each) for each in elements(names.content)]
    return []


def _alt_name(name: Element) -> tuple[int, str]:
    number, content = name.tag & 31, name.content
    if number in _TEXTS:
        return number, content.decode(errors="replace")
    if number == _ADDRESS and len(content) in (4, 16):
        return number, java_address(str(ip_address(content)))
    if number == _IDENTIFIER:
        return number, object_identifier(content)
    return number, content.hex()


def why_incompatible(
    new: CertificateEntry, old: CertificateEntry, *, may_change_subject: bool, may_change_alt_names: bool
) -> str:
    """Return, in Kafka's words, why a listener may not exchange one certificate for another; empty if it may."""
    if not may_change_subject and _folded(new.subject) != _folded(old.subject):
        return (
            f"Keystore DistinguishedName does not match:  existing={{alias={old.alias}, DN={_spaced(old.subject)}}}, "
            f"new={{alias={new.alias}, DN={_spaced(new.subject)}}}"
        )
    if not may_change_alt_names and not new.alt_names >= old.alt_names:
        return (
            f"Keystore SubjectAltNames do not match:  existing={{alias={old.alias}, SAN={_listed(old)}}}, "
            f"new={{alias={new.alias}, SAN={_listed(new)}}}"
        )
    return ""


def _folded(subject: str) -> str:
    return " ".join(subject.lower().split())


def _spaced(subject: str) -> str:
    return _COMMA.sub(", ", subject)


def _listed(entry: CertificateEntry) -> str:
    return f"[{', '.join(f'[{number}, {text}]' for number, text in sorted(entry.alt_names))}]"
