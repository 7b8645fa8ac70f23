"""A message of librdkafka as plain values."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.library_message import fields_of


class Consumed:
    """A message as the library hands it over: keys, values and headers may be text there."""

    def __init__(self, key: str | bytes | None, headers: Any, timestamp: tuple[int, int]) -> None:
        self._key = key
        self._headers = headers
        self._timestamp = timestamp

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 47

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp

    def key(self) -> str | bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return b"v"

    def headers(self) -> Any:
        return self._headers


@pytest.mark.parametrize(
    ("consumed", "key", "headers", "timestamp"),
    [
        (Consumed("k", [("a", "1"), ("b", None), ("a", b"\xff")], (1, 5)), b"k", (("a", b"1"), ("b", None), ("a", b"\xff")), 5),
        (Consumed(None, None, (0, 0)), None, (), -1),
        (Consumed(b"", [], (2, 7)), b"", (), 7),
    ],
    ids=["text", "nothing", "bytes"],
)  # fmt: skip
def test_the_fields_of_a_message(consumed: Any, key: bytes | None, headers: tuple[Any, ...], timestamp: int) -> None:
    assert fields_of(consumed) == ("t", 3, 47, timestamp, key, b"v", headers)
