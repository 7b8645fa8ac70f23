"""DER, and bytes that are not."""

from __future__ import annotations

import pytest

from barnabas.security.der import elements, object_identifier


def test_elements_follow_one_another() -> None:
    short, long = bytes.fromhex("0401aa"), bytes.fromhex("048180") + bytes(128)
    found = list(elements(short + long))
    assert [(each.tag, len(each.content), each.whole) for each in found] == [(4, 1, short), (4, 128, long)]


@pytest.mark.parametrize("data", ["04", "0402aa", "0480", "0485ffffffffff", "1f01aa", "0482ff"], ids=lambda data: data)
def test_what_is_not_der_is_an_error(data: str) -> None:
    with pytest.raises(ValueError, match="not DER"):
        list(elements(bytes.fromhex(data)))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("550403", "2.5.4.3"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("0992268993f22c640119", "0.9.2342.19200300.100.1.25"),
        ("883703", "2.999.3"),
    ],
)
def test_object_identifiers(content: str, text: str) -> None:
    assert object_identifier(bytes.fromhex(content)) == text


@pytest.mark.parametrize("content", ["", "5504ff", "55" * 5000], ids=["empty", "no end", "long"])
def test_an_object_identifier_without_an_end_is_an_error(content: str) -> None:
    with pytest.raises(ValueError, match="object identifier"):
        object_identifier(bytes.fromhex(content))
