"""Subjects and alternative names of certificates: read, compared, and told in Kafka's words."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from barnabas.security.certificate_entries import CertificateEntry, certificate_entry, why_incompatible


def der(
    subject: str = "CN=node",
    names: list[x509.GeneralName] | None = None,
    serial: int = 7,
    until: datetime = datetime(2026, 1, 2, tzinfo=UTC),
) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name.from_rfc4514_string(subject)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), serial, since, until)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


def test_an_entry_has_the_names_as_java_writes_them() -> None:
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
        x509.UniformResourceIdentifier("spiffe://example/node"),
        x509.RFC822Name("ops@example.org"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    ]
    entry = certificate_entry("kafka", der("CN=node,O=Example", names, serial=0xABC))
    assert (entry.subject, entry.serial) == ("CN=node,O=Example", 0xABC)
    assert entry.alt_names == {
        (1, "ops@example.org"),
        (2, "localhost"),
        (6, "spiffe://example/node"),
        (7, "127.0.0.1"),
        (7, "0:0:0:0:0:0:0:1"),
        (8, "1.2.3"),
    }
    assert str(entry) == "CN=node,O=Example, serial number abc"


@pytest.mark.parametrize("end", [datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2055, 1, 1, tzinfo=UTC)])
def test_an_entry_has_the_last_second_in_both_forms_of_a_time(end: datetime) -> None:
    """Up to 2049 a certificate has two digits of the year, later four."""
    assert certificate_entry("kafka", der(until=end)).last_second == end.timestamp()


def test_other_kinds_of_names_are_compared_by_their_bytes() -> None:
    one, two = (
        certificate_entry("kafka", der(names=[x509.OtherName(x509.ObjectIdentifier("1.2.3"), b"\x0c\x01" + each)]))
        for each in (b"a", b"b")
    )
    assert one.alt_names != two.alt_names
    assert {number for number, _ in one.alt_names} == {0}


def test_a_certificate_without_names() -> None:
    assert certificate_entry("kafka", der()).alt_names == frozenset()
    with pytest.raises(ValueError, match="not a certificate"):
        certificate_entry("kafka", b"\x30\x02\x30\x00")


def entry(subject: str = "CN=node,O=Example", *names: tuple[int, str]) -> CertificateEntry:
    return CertificateEntry("kafka", subject, frozenset(names), 1)


@pytest.mark.parametrize("subject", ["CN=node,O=Example", "cn=NODE,O=example", "CN=node,O=Example  "])
def test_a_subject_is_the_same_without_regard_to_case_and_spaces(subject: str) -> None:
    assert why_incompatible(entry(subject), entry(), may_change_subject=False, may_change_alt_names=False) == ""


def test_another_subject() -> None:
    new, old = entry("CN=other"), entry()
    assert why_incompatible(new, old, may_change_subject=True, may_change_alt_names=False) == ""
    assert why_incompatible(new, old, may_change_subject=False, may_change_alt_names=True) == (
        "Keystore DistinguishedName does not match:  existing={alias=kafka, DN=CN=node, O=Example}, "
        "new={alias=kafka, DN=CN=other}"
    )


def test_names_may_come_but_not_go() -> None:
    few, many = entry("CN=node", (2, "a")), entry("CN=node", (7, "127.0.0.1"), (2, "a"))
    assert why_incompatible(many, few, may_change_subject=False, may_change_alt_names=False) == ""
    assert why_incompatible(few, many, may_change_subject=False, may_change_alt_names=True) == ""
    assert why_incompatible(few, many, may_change_subject=True, may_change_alt_names=False) == (
        "Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[[2, a], [7, 127.0.0.1]]}, "
        "new={alias=kafka, SAN=[[2, a]]}"
    )
