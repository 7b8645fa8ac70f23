"""JSON, and what is taken for it."""

from __future__ import annotations

import pytest

from barnabas.decoding.json_values import as_written, from_json
from barnabas.spark.decoding.bad_value import BadValue


def test_the_text_is_what_was_written() -> None:
    found = as_written(b'{"b": 1.0,  "a": [null]}', 12)
    assert (found.data, found.text, found.is_cut) == ({"b": 1.0, "a": [None]}, '{"b": 1.0,  ', True)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"NaN", "NaN is not a number of JSON"),
        (b"[1] x", "Extra data"),
        (b'"\xff"', "it is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 100_000, "it is not JSON"),
    ],
)
def test_what_is_not_json(data: bytes, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        from_json(data)
