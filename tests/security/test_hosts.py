"""Addresses as Java writes them, and ranges of addresses."""

from __future__ import annotations

import pytest

from barnabas.security.hosts import java_address, parse_range


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:0DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::10.0.0.7", "0:0:0:0:0:0:a00:7"),
        ("", ""),
        ("localhost", "localhost"),
    ],
)
def test_addresses_are_written_as_by_java(given: str, written: str) -> None:
    assert java_address(given) == written
    assert java_address(written) == written


def test_a_range_has_its_first_and_its_last_address() -> None:
    found = parse_range("10.1.2.3/22")
    assert [found.holds(host) for host in ("10.0.255.255", "10.1.0.0", "10.1.3.255", "10.1.4.0")] == [
        False,
        True,
        True,
        False,
    ]
    found = parse_range("2001:db8::7/126")
    hosts = [f"2001:db8:0:0:0:0:0:{last}" for last in "3478"]
    assert [found.holds(host) for host in hosts] == [False, True, True, False]


def test_a_range_holds_addresses_of_its_own_version() -> None:
    assert not parse_range("::/0").holds("10.0.0.1")
    assert not parse_range("0.0.0.0/0").holds("0:0:0:0:0:0:a00:1")
    assert parse_range("0.0.0.0/0").holds("0.0.0.1")
    assert not parse_range("0.0.0.0/0").holds("0.0.0.0")
    assert parse_range("0.0.0.0/0").holds("255.255.255.255")
    assert parse_range("fe80::/10").holds("fe80:0:0:0:0:0:0:1%eth0")
    assert not parse_range("0.0.0.0/0").holds("localhost")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1.2.3.4/33", "Value [33] not in range [0,32]"),
        ("256.1.1.1/8", "Value [256] not in range [0,255]"),
        ("1.2.3/8", "Could not parse [1.2.3/8]"),
        ("1.1.1.1/8 ", "Could not parse [1.1.1.1/8 ]"),
        ("::1/129", "Could not parse [::1/129] - prefix length must be between 0 and 128"),
        ("::1/-1", "Could not parse [::1/-1] - prefix length must be between 0 and 128"),
        ("::1/", "Could not parse [::1/] - invalid prefix length"),
        ("::1", "Could not parse [::1] - missing prefix length"),
        ("::ffff:1.2.3.4/64", "Could not parse [::ffff:1.2.3.4] - not an IPv6 address"),
        ("::g/3", "Could not parse [::g]"),
    ],
)
def test_other_texts_are_no_ranges_and_say_why_as_kafka_does(text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_range(text)
    assert str(caught.value) == why


def test_java_accepts_brackets_and_long_zeros() -> None:
    assert parse_range("[2001:db8::]/32") == parse_range("2001:0db8::/32") == parse_range("002001:000db8::/32")
