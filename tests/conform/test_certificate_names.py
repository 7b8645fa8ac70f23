"""Names of certificates, and `ssl.principal.mapping.rules`: the JDK's `X500Principal` and Kafka's `SslPrincipalMapper` say the same."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from random import Random

import apache_kafka
import pytest
from cryptography import x509

from barnabas.security.certificate_names import NoMatchingRule, PrincipalMapper, certificate_name
from barnabas.security.setting_error import SecuritySettingError
from tests.conform.certificates.drawn_names import drawn_name, drawn_rules

pytestmark = pytest.mark.conform

COUNT = 5_000
NAMES = [
    "CN=a", "CN=ab,OU=ServiceUsers,O=Org", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "", "cn=x,y", r"CN=\,a,OU=12", "abc",
    "CN=Jürgen İß,OU=x", "a\nb", "CN=a\n", "CN=a\rb,OU=1", "CN=\u2028b", "C/N=1", "aaa", "CN=ΑΣ,OU=x",
]  # fmt: skip


def java(questions: Iterable[str]) -> list[str | None]:
    """Return Java's answer to each question; None for an exception."""
    program = str(Path(__file__).parent / "certificates" / "Naming.java")
    done = subprocess.run(
        ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", apache_kafka.classpath(), program],
        input="".join(f"{question}\n" for question in questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [None if line.startswith("!") else bytes.fromhex(line).decode() for line in done.stdout.splitlines()]


def certificate(name: bytes) -> bytes:
    """Return a certificate of that subject, as far as a name needs it: there is neither key nor signature."""
    before = bytes.fromhex("a003020102 020101 3000 3000 3000")
    return der(0x30, der(0x30, before + name))


def der(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x83]) + len(content).to_bytes(3) + content


def test_names_are_java_s() -> None:
    random = Random(1)
    names = [drawn_name(random) for _ in range(COUNT)]
    names.append(x509.Name.from_rfc4514_string("CN=alice,OU=orders,O=example,C=DE").public_bytes())
    theirs = java(f"name {name.hex()}" for name in names)
    differing = [
        (name.hex(), ours, their)
        for name, their in zip(names, theirs, strict=True)
        if (ours := certificate_name(certificate(name))) != their
    ]
    assert differing == []
    assert theirs[-1] == "CN=alice,OU=orders,O=example,C=DE"


def mapped(rules: str, name: str) -> str | None:
    try:
        return PrincipalMapper(rules)(name)
    except (NoMatchingRule, SecuritySettingError):
        return None


def test_rules_are_kafkas() -> None:
    random = Random(2)
    pairs = [(drawn_rules(random), random.choice(NAMES)) for _ in range(COUNT)]
    theirs = java(f"map {rules.encode().hex()} {name.encode().hex()}" for rules, name in pairs)
    differing = [
        (rules, name, ours, their)
        for (rules, name), their in zip(pairs, theirs, strict=True)
        if (ours := mapped(rules, name)) != their
    ]
    assert differing == []
    assert sum(answer is not None for answer in theirs) > COUNT / 4


@pytest.mark.parametrize("rules", ["RULE:.*/$1/", "RULE:(.*)/$/", "RULE:(.*)/$a/", "RULE:(.*)/$$/"])
def test_rules_that_we_refuse_fail_in_kafka_with_the_first_client(rules: str) -> None:
    with pytest.raises(SecuritySettingError):
        PrincipalMapper(rules)
    assert java([f"map {rules.encode().hex()} {b'CN=a'.hex()}"]) == [None]
