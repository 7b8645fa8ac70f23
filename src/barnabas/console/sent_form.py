"""The body of a request that sends a form: its texts and files, within bounds of size, of time, and of how many are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from barnabas.console.changes.given import SentFile
from barnabas.console.multipart_form import MULTIPART, TEXT_BYTES_MAX, BadMultipart, MultipartForm

READING_AT_ONCE = 4
"""Forms with files."""
PATIENCE_S = 120.0
"""How long a browser may take to send a form."""


class BadBody(Exception):
    """A form was not read, or not to its end.

    Args:
        sentence: says why.
        status: of HTTP.
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


class SentForm(NamedTuple):
    """A form that was sent.

    Attributes:
        texts: by the names of fields; of a name that comes twice the last one.
        files: by the names of their fields.
    """

    texts: dict[str, str]
    files: dict[str, SentFile]


class FormReader:
    """Reads forms, few with files at a time.

    Args:
        patience_s: how long one may take.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._reading = 0

    def __repr__(self) -> str:
        return f"<FormReader reading={self._reading}>"

    async def read(self, content_type: str, length: int, body: AsyncIterable[bytes], file_bytes_max: int) -> SentForm:
        """Read a form.

        Args:
            content_type: the header; without `multipart/form-data` the form is URL-encoded.
            length: of the body, as the request declares it.
            body: its pieces.
            file_bytes_max: how large its files may be together.

        Raises:
            BadBody: the form cannot be used; the rest of the body is not read.
        """
        is_multipart = content_type.partition(";")[0].strip().lower() == MULTIPART
        if is_multipart and self._reading >= READING_AT_ONCE:
            raise BadBody(
                f"{READING_AT_ONCE} files are being sent to this console: try again when they are there.", 503
            )
        self._reading += is_multipart
        most = TEXT_BYTES_MAX + (file_bytes_max if is_multipart else 0)
        try:
            async with asyncio.timeout(self._patience_s):
                pieces = _bounded(body, length, most)
                return await (_multipart(content_type, pieces, file_bytes_max) if is_multipart else _encoded(pieces))
        except BadMultipart as error:
            raise BadBody(str(error), 400) from None
        except ClientDisconnect:
            raise BadBody("The form was not sent to its end.", 400) from None
        except TimeoutError:
            raise BadBody(f"The form was not sent within {self._patience_s:.0f} seconds.", 408) from None
        finally:
            self._reading -= is_multipart


async def _bounded(body: AsyncIterable[bytes], length: int, most: int) -> AsyncIterator[bytes]:
    count = 0
    async for each in body:
        count += len(each)
        if count > length:
            raise BadBody("The form is longer than it says.", 400)
        if count > most:
            raise BadBody(f"The form is longer than {most // 1024} KB.", 413)
        yield each


async def _multipart(content_type: str, body: AsyncIterable[bytes], file_bytes_max: int) -> SentForm:
    form = MultipartForm(content_type, file_bytes_max)
    async for each in body:
        form.feed(each)
    form.end()
    return SentForm(form.texts, form.files)


async def _encoded(body: AsyncIterable[bytes]) -> SentForm:
    data = bytearray()
    async for each in body:
        data += each
    return SentForm(dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True, errors="replace")), {})
