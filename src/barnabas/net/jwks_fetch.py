"""Reads the document with the keys of a token server (a JWK set): from a file, or over HTTPS or HTTP.

- It blocks, so it runs in a thread of its own.
- A document is at most `DOCUMENT_BYTES_MAX` long, and is there within `DEADLINE_S`.
- A redirect is followed within one scheme only, so that HTTPS stays HTTPS.
- Errors name the server without the query of its address, which may have a secret.

Source: Kafka's `RefreshingHttpsJwks`, `JwksFileVerificationKeyResolver`, `ConfigurationUtils.validateUrl`.
"""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from barnabas.words.printable import printable

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import IO

__all__ = ["DEADLINE_S", "DOCUMENT_BYTES_MAX", "document_reader", "shown_address"]

DEADLINE_S = 10.0
"""For connection, request and answer together."""

DOCUMENT_BYTES_MAX = 1 << 20
"""A key has about a kilobyte; a longer document is not a key set."""


def document_reader(url: str, context: Callable[[], ssl.SSLContext]) -> Callable[[], bytes]:
    """Return a function that reads the document; it blocks, and raises OSError with one line.

    Args:
        url: begins with `file:`, `https:` or `http:`.
        context: makes the context of TLS, if the address needs one.

    Raises:
        ValueError: nothing can be read from such an address; the text goes behind the name of the setting.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return lambda: _from_file(path)
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("expected a URL that begins with file:, https: or http:")
    if "@" in parts.netloc:
        raise ValueError("has a user or a password before the host; a key set is public, so leave it out")
    handlers: list[urllib.request.BaseHandler] = [_SameScheme()]
    if parts.scheme == "https":
        handlers.append(urllib.request.HTTPSHandler(context=context()))
    opener = urllib.request.build_opener(*handlers)
    return lambda: _from_server(opener, url)


def shown_address(url: str) -> str:
    """Return an address for messages: without its query."""
    return printable(url.partition("?")[0].partition("#")[0])


class _SameScheme(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            document = file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise OSError(f"the file cannot be read ({error.strerror})") from None
    return _bounded(document)


def _from_server(opener: urllib.request.OpenerDirector, url: str) -> bytes:
    ends = time.monotonic() + DEADLINE_S
    asked = urllib.request.Request(url, headers={"Accept": "application/json", "Cache-Control": "no-cache"})
    document = bytearray()
    try:
        with opener.open(asked, timeout=DEADLINE_S) as answer:
            while len(document) <= DOCUMENT_BYTES_MAX and (piece := answer.read1(1 << 16)):
                document += piece
                if time.monotonic() > ends:
                    raise OSError(f"the server did not send the whole document within {DEADLINE_S:.0f} s")
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"the server answered with HTTP status {error.code}") from None
    except urllib.error.URLError as error:
        raise OSError(f"the server cannot be reached: {printable(str(error.reason))}") from None
    except (HTTPException, ValueError):
        raise OSError("the server's answer is not HTTP") from None
    return _bounded(bytes(document))


def _bounded(document: bytes) -> bytes:
    if len(document) > DOCUMENT_BYTES_MAX:
        raise OSError(f"the document is longer than {DOCUMENT_BYTES_MAX:,} bytes")
    return document
