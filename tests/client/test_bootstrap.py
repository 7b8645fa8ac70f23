"""The forms in which addresses may be written."""

from typing import Any

import pytest

from barnabas.client.bootstrap import parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1, b:2 ,", [("a", 1), ("b", 2)]),
        ("[::1]:9, [fe80::1]", [("::1", 9), ("fe80::1", 9092)]),
        ("PLAINTEXT://host:19092", [("host", 19092)]),
        (["x:1", "y"], [("x", 1), ("y", 9092)]),
    ],
)
def test_bootstrap_addresses(text: Any, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


def test_an_ipv6_address_without_brackets_gets_an_example() -> None:
    with pytest.raises(ValueError, match=r"write host:port, for example \[::1\]:9092"):
        parse_bootstrap("fe80::1:9100")


@pytest.mark.parametrize("text", ["", " , ", "host:", "host:0", "host:65536", "host:nine", ":9092", "[::1", "[::1]x"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"write host:port|from 1 to 65535"):
        parse_bootstrap(text)
