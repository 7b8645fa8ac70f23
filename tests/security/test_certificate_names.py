"""Names as Java writes them, and the rules that map them. tests/conform compares both with Java itself."""

from __future__ import annotations

import ssl

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from barnabas.security.certificate_names import NoMatchingRule, PrincipalMapper, certificate_name, subject_name
from barnabas.security.setting_error import SecuritySettingError
from tests.security.certificates import authority, user

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


def test_the_last_rdn_is_first() -> None:
    issued = authority().issue("CN=alice,OU=orders,O=example,C=DE")
    assert certificate_name(ssl.PEM_cert_to_DER_cert(issued.certificate)) == "CN=alice,OU=orders,O=example,C=DE"


def name(*attributes: x509.NameAttribute) -> str:
    return subject_name_of(x509.Name(attributes))


def subject_name_of(name: x509.Name) -> str:
    class Named:
        subject = name

    return subject_name(Named())  # type: ignore[arg-type]


def test_an_attribute_without_a_keyword_is_hex() -> None:
    mail = x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c")
    assert name(x509.NameAttribute(NameOID.COMMON_NAME, "a"), mail) == "1.2.840.113549.1.9.1=#16056140622e63,CN=a"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a,b", r"a\,b"),
        ('<a>;b=c+d"e#f\\', r"\<a\>\;b\=c\+d\"e\#f" + "\\\\"),
        ("  a b ", r"\ \ a b\ "),
        (" ", r"\ "),
        ("a\0b", r"a\00b"),
        ("Jürgen 漢", "Jürgen 漢"),
    ],
)
def test_values_are_escaped(value: str, written: str) -> None:
    assert name(x509.NameAttribute(NameOID.COMMON_NAME, value)) == f"CN={written}"


def test_an_rdn_of_several_attributes_keeps_their_order() -> None:
    whole = x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.DOMAIN_COMPONENT, "org")]),
            x509.RelativeDistinguishedName(
                [x509.NameAttribute(NameOID.COMMON_NAME, "b"), x509.NameAttribute(NameOID.USER_ID, "a")]
            ),
        ]
    )
    assert sorted(subject_name_of(whole).split(",")[0].split("+")) == ["CN=b", "UID=a"]
    assert subject_name_of(whole).split(",")[1] == "DC=org"


@pytest.mark.parametrize("der", [b"", b"0", bytes.fromhex("3000"), bytes.fromhex("30023000")])
def test_other_bytes_are_no_certificate(der: bytes) -> None:
    with pytest.raises(ValueError, match=r"not (a certificate|DER)|unpack"):
        certificate_name(der)


@pytest.mark.parametrize(
    ("rules", "mapped"),
    [
        ("DEFAULT", DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U,DEFAULT", "DUKE"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/,DEFAULT", DUKE),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/, RULE:^CN=([^,]*),OU=(\\w+).*$/$1@$2/ , DEFAULT", "Duke@ServiceUsers"),
        ("RULE:^CN=(.*?),.*$/$1@$4/", "Duke@$4"),
        ("RULE:^CN=(.*?),.*$/$12/", "Duke2"),
        ("RULE:.*/user/", "useruser"),
        (", ,DEFAULT", DUKE),
        (r"RULE:^CN=(.*?),.*$/a\/\$1/", "a/$1"),
    ],
)
def test_rules(rules: str, mapped: str) -> None:
    assert PrincipalMapper(rules)(DUKE) == mapped


def test_without_a_matching_rule_there_is_no_principal() -> None:
    with pytest.raises(NoMatchingRule, match="No rules apply to CN=x"):
        PrincipalMapper("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/")("CN=x")


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "RULE:^CN=(.*?)",
        "RULE:^CN=(.*?)/$1",
        "RULE:^CN=(.*?)/$1/X",
        "RULE:^CN=(.*?/$1/",
        "RULE:CN=.*/$1/",
        "RULE:CN=(.*)/$/",
        r"RULE:(a)\1/$1/",
    ],
)
def test_rules_that_are_not_valid(rules: str) -> None:
    with pytest.raises(SecuritySettingError, match=r"^ssl\.principal\.mapping\.rules: Invalid rule: "):
        PrincipalMapper(rules)


def test_a_certificate_of_the_stage() -> None:
    assert certificate_name(ssl.PEM_cert_to_DER_cert(user().certificate)) == "CN=alice"


def test_a_rule_of_several_lines_makes_an_error_of_one() -> None:
    with pytest.raises(SecuritySettingError) as caught:
        PrincipalMapper("RULE:a\n\x1b/$1/")
    assert (
        str(caught.value)
        == "ssl.principal.mapping.rules: Invalid rule: RULE:a \\x1b/$1/: the expression has no group for $1"
    )


def test_what_re2_quotes_of_a_rule_is_on_the_same_line() -> None:
    with pytest.raises(SecuritySettingError) as caught:
        PrincipalMapper("RULE:[a\n\x1b/x/")
    assert str(caught.value) == r"ssl.principal.mapping.rules: Invalid rule: RULE:[a \x1b/x/: missing ]: [a \x1b"
