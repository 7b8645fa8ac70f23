"""Java's names of cipher suites, beside OpenSSL's."""

from __future__ import annotations

import ssl

import pytest

from barnabas.security.cipher_suites import SUITES_OF_TLS_13, cipher_suites, openssl_name

NAMES = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "SSL_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
}


@pytest.mark.parametrize(("java", "openssl"), NAMES.items(), ids=list(NAMES))
def test_names(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(f"{openssl}:@SECLEVEL=0")
    assert openssl in {each["name"] for each in context.get_ciphers()}


@pytest.mark.parametrize(
    "name",
    ["TLS_NULL_WITH_NULL_NULL", "TLS_RSA_WITH_RC4_128_MD5", "ECDHE-RSA-AES128-GCM-SHA256", "TLS_RSA_WITH_CHACHA20_POLY1305_SHA256", ""],
)  # fmt: skip
def test_other_names_are_unknown(name: str) -> None:
    assert openssl_name(name) is None
    with pytest.raises(ValueError, match="is not a cipher suite"):
        cipher_suites([name])


def test_a_list_is_the_whole_choice() -> None:
    assert cipher_suites(NAMES) == (tuple(NAMES.values()), False)
    assert cipher_suites(SUITES_OF_TLS_13) == ((), True)
    assert cipher_suites([*SUITES_OF_TLS_13, "TLS_RSA_WITH_AES_256_GCM_SHA384"]) == (("AES256-GCM-SHA384",), True)


def test_a_part_of_the_suites_of_tls_13_cannot_be_chosen() -> None:
    with pytest.raises(ValueError, match=r"Python cannot choose among the suites of TLS 1\.3: name all of"):
        cipher_suites(SUITES_OF_TLS_13[:1])
