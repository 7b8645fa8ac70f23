"""The guard before every page checks the host that a request names, and the login, and adds headers to every response.

| header | keeps out |
|---|---|
| `Content-Security-Policy` | script and style that are not files of the console; frames around it; forms to elsewhere |
| `X-Content-Type-Options: nosniff` | a value that is taken for a script |
| `Referrer-Policy: same-origin` | names of topics in the logs of other sites |
| `Cache-Control: no-store` | pages that stay in a shared cache after a log-out |

A request that changes something (POST) must come from a page of the console itself: its `Origin` is compared with its `Host`, and the
cookie is `SameSite=Strict`. A form that changes a cluster has a token, too (`form_tokens`). Under the policy `no-referrer` a browser
would send its own forms with `Origin: null`.

Sources: RFC 9110 section 7.2, CSP level 3, the Fetch standard.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.links import Links
from barnabas.console.logins import Logins
from barnabas.http_access import is_loopback, is_own_host

COOKIE = "barnabas-console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
BODY_BYTES_MAX = 64 * 1024
_DIGITS_MAX = 18
_STATIC = "max-age=3600"


class Guard:
    """Lets requests through to the pages.

    Args:
        host: that the console listens on.
        names: other hosts by which it is reached, such as that of a proxy.
        files: how many bytes of a file a form may have, by the end of its path.
    """

    def __init__(
        self,
        app: ASGIApp,
        logins: Logins,
        links: Links,
        host: str,
        names: Collection[str] = (),
        files: Mapping[str, int] | None = None,
    ) -> None:
        self._app = app
        self._logins = logins
        self._links = links
        self._host = host
        self._names = {each.lower() for each in names}
        self._files = files or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                is_static = scope["path"].startswith(self._links.to("static/"))
                headers.setdefault("cache-control", _STATIC if is_static else "no-store")
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host")
        if host is not None and _is_local(scope) and not self._is_named(host):
            return PlainTextResponse("This console answers to localhost, and not to another name (Host).\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            if not _is_from_here(headers):
                return PlainTextResponse("The form is not from a page of this console (Origin).\n", 403)
            length = headers.get("content-length", "")
            file_bytes_max = next((most for end, most in self._files.items() if scope["path"].endswith(end)), 0)
            if not _is_number(length) or int(length) > BODY_BYTES_MAX + file_bytes_max:
                bound = f" (a file may have {file_bytes_max >> 20} MB)" if file_bytes_max else ""
                return PlainTextResponse(f"The form is too long{bound}, or does not say how long it is.\n", 413)
        path = scope["path"]
        if path == self._links.to("login") or path.startswith(self._links.to("static/")):
            return None
        if self._logins.is_let_in(headers.get("authorization"), cookie_of(headers)):
            return None
        if headers.get("authorization") is None and "text/html" in headers.get("accept", ""):
            query = scope["query_string"].decode("ascii", "replace")
            wanted = f"{path}?{query}" if query else path
            return RedirectResponse(f"{self._links.to('login')}?to={quote(wanted, safe='')}", 303)
        return PlainTextResponse("Log in, or show the token.\n", 401, {"www-authenticate": "Bearer"})

    def _is_named(self, host: str) -> bool:
        return (
            is_own_host(host, self._host)
            or host.rpartition(":")[0].lower() in self._names
            or host.lower() in self._names
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def _is_local(scope: Scope) -> bool:
    """Return whether a request arrived over the machine's loopback interface; as one that did, if that is not known."""
    return is_loopback((scope.get("server") or ("",))[0])


def _is_from_here(headers: Headers) -> bool:
    origin = headers.get("origin")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def cookie_of(headers: Headers) -> str | None:
    """Return the cookie of a login."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def is_here(address: str, links: Links) -> bool:
    """Return whether an address, to which a login leads, is a page of the console."""
    return address.startswith(links.to()) and not address.startswith(("//", "/\\")) and address.isprintable()
