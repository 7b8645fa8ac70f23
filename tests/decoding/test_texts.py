"""Bytes as text, cut where no character is divided."""

from __future__ import annotations

import base64

import pytest

from barnabas.decoding.texts import as_base64, as_hex, as_text, cut, is_readable
from barnabas.spark.decoding.bad_value import BadValue

EURO = "a€" * 10


@pytest.mark.parametrize("most", range(1, 45))
def test_a_cut_text_is_the_beginning(most: int) -> None:
    found = as_text(EURO.encode(), most)
    assert EURO.startswith(found.text)
    assert len(found.text.encode()) <= most
    assert most - len(found.text.encode()) < 3 or not found.is_cut
    assert (found.size, found.is_cut) == (40, most < 40)


@pytest.mark.parametrize("data", [b"\xff", b"a\xe2\x82", b"\xc3(" * 50, "\ud800".encode("utf-8", "surrogatepass")])
def test_what_is_no_text(data: bytes) -> None:
    for most in (None, 1000):
        with pytest.raises(BadValue, match="it is not UTF-8: byte"):
            as_text(data, most)


def test_hex_and_base64() -> None:
    data = bytes(range(100))
    assert bytes.fromhex(as_hex(data, None).text) == data
    assert (as_hex(data, 10).text, as_hex(data, 10).is_cut) == ("0001020304", True)
    assert base64.b64decode(as_base64(data, None).text) == data
    assert data.startswith(base64.b64decode(as_base64(data, 30).text))
    assert as_base64(data, 30).is_cut


def test_what_people_can_read() -> None:
    assert is_readable("line\n\tline €")
    assert not any(map(is_readable, ("\x00", "\x1b[31m", "a\u202eb")))
    assert (cut("abc", 2), cut("abc", 3), cut("abc", None)) == (("ab", True), ("abc", False), ("abc", False))
