"""Sends a request for a token to a token server: what `security/token_source` leaves to the side that has sockets.

The server's certificate is verified with the system's authorities. A redirect is not followed, because the request has the client's
secret. Errors name the server and never the request.

Source: RFC 6749 4.4 (client credentials).
"""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import IO

    from barnabas.security.token_source import TokenRequest

__all__ = ["fetch_token"]

TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 1 << 20
"""A token has some kilobytes; a longer answer is not one."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def fetch_token(request: TokenRequest) -> bytes:
    """Return the body of a token server's answer.

    Raises:
        OSError: no answer, or not one of success; the text names the server's address and the HTTP status.
    """
    asked = urllib.request.Request(request.url, request.body, dict(request.headers), method="POST")
    try:
        with urllib.request.build_opener(_NoRedirect).open(asked, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(ANSWER_BYTES_MAX)
            return body
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"{request.url} answered with HTTP status {error.code}") from None
    except urllib.error.URLError as error:
        raise OSError(f"{request.url} cannot be reached: {error.reason}") from None
