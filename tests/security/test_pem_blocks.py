"""PEM texts as people write them, in files and in settings."""

from __future__ import annotations

import pytest

from barnabas.security.pem_blocks import PemBlock, pem_blocks, pem_text

BLOCK = PemBlock("CERTIFICATE", bytes(range(100)))


def test_a_text_has_its_blocks_in_order_and_nothing_between_them() -> None:
    other = PemBlock("PRIVATE KEY", b"key")
    text = "Bag Attributes\n" + pem_text([BLOCK]) + "subject=CN = a\n" + pem_text([other])
    assert list(pem_blocks(text)) == [BLOCK, other]


@pytest.mark.parametrize("end", [" ", "\r\n", "\n\n", "  \t"], ids=["space", "crlf", "empty-lines", "tab"])
def test_lines_may_end_in_any_space(end: str) -> None:
    assert list(pem_blocks(pem_text([BLOCK, BLOCK]).replace("\n", end))) == [BLOCK, BLOCK]


def test_lines_of_the_written_text_are_those_of_openssl() -> None:
    lines = pem_text([BLOCK]).splitlines()
    assert lines[0] == "-----BEGIN CERTIFICATE-----"
    assert [len(line) for line in lines[1:-1]] == [64, 64, 8]
    assert lines[-1] == "-----END CERTIFICATE-----"


def test_headers_of_an_old_key_are_kept() -> None:
    text = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nQUJD\n-----END RSA PRIVATE KEY-----\n"
    (block,) = pem_blocks(text)
    assert block.headers == ("Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00")
    assert block.is_encrypted
    assert pem_text([block]) == text


def test_an_encrypted_pkcs8_key_says_so() -> None:
    assert PemBlock("ENCRYPTED PRIVATE KEY", b"").is_encrypted
    assert not PemBlock("PRIVATE KEY", b"").is_encrypted


def test_an_end_of_another_block_is_no_end() -> None:
    assert list(pem_blocks("-----BEGIN CERTIFICATE-----\nQUJD\n-----END PRIVATE KEY-----\n")) == []


def test_a_body_that_is_not_base64_is_an_error_without_the_body() -> None:
    with pytest.raises(ValueError, match="the block PRIVATE KEY is not base64") as raised:
        list(pem_blocks("-----BEGIN PRIVATE KEY-----\nsecret!\n-----END PRIVATE KEY-----"))
    assert "secret" not in str(raised.value)


def test_a_repr_has_no_key() -> None:
    assert "secret" not in repr(PemBlock("PRIVATE KEY", b"secret"))
