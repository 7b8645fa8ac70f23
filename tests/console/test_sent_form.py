"""Bodies of requests that send forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import ClientDisconnect

from barnabas.console.changes.given import SentFile
from barnabas.console.sent_form import READING_AT_ONCE, BadBody, FormReader, SentForm
from tests.console.multipart import TYPE, form, part

ENCODED = "application/x-www-form-urlencoded"


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for each in data:
        yield each


async def endless() -> AsyncIterator[bytes]:
    yield b"--xyz\r\n"
    await asyncio.Event().wait()


async def lost() -> AsyncIterator[bytes]:
    yield b"a=1"
    raise ClientDisconnect


def read(content_type: str, *data: bytes, length: int = 1 << 30, most: int = 0) -> SentForm:
    return asyncio.run(FormReader().read(content_type, length, pieces(*data), most))


def test_both_encodings() -> None:
    assert read(ENCODED, b"a=1&b=&a=%C3", b"%A9") == SentForm({"a": "é", "b": ""}, {})
    whole = form(part("a", b"1"), part("f", b"2", "n"))
    assert read(TYPE, whole[:20], whole[20:], most=9) == SentForm({"a": "1"}, {"f": SentFile("n", b"2")})


def test_what_is_longer_than_it_may_be_or_says() -> None:
    for body, length, most, sentence, status in (
        (b"x" * 100_000, 1 << 30, 1 << 20, "longer than 64 KB", 413),
        (b"a=1234", 3, 0, "longer than it says", 400),
    ):
        with pytest.raises(BadBody) as refused:
            read(ENCODED, body, length=length, most=most)
        assert (sentence in refused.value.sentence, refused.value.status) == (True, status)


def test_a_form_that_does_not_end() -> None:
    with pytest.raises(BadBody) as refused:
        asyncio.run(FormReader(patience_s=0.01).read(TYPE, 1000, endless(), 1000))
    assert (refused.value.sentence, refused.value.status) == ("The form was not sent within 0 seconds.", 408)
    with pytest.raises(BadBody, match="not sent to its end"):
        asyncio.run(FormReader().read(ENCODED, 1000, lost(), 0))


def test_few_at_a_time() -> None:
    async def several() -> list[object]:
        reader = FormReader(patience_s=0.01)
        many = [reader.read(TYPE, 1000, endless(), 1000) for _ in range(READING_AT_ONCE + 2)]
        found = await asyncio.gather(*many, return_exceptions=True)
        # Those that ended made room.
        again = await reader.read(TYPE, 1000, pieces(form(part("a", b"1"))), 1000)
        return [*(each.status for each in found if isinstance(each, BadBody)), again.texts]

    assert asyncio.run(several()) == [408] * READING_AT_ONCE + [503, 503, {"a": "1"}]
