"""One request to a registry over HTTP.

- All addresses are tried, beginning with the last that answered. The next is tried after no answer, and after 429 and 5xx.
- When none has answered, all are tried again after a wait, up to `max.retries` times. A registry's routes can be repeated: a schema that
  is registered twice has one id.
- Redirects are errors: credentials must not go to a host that the user did not name.
- An answer may have 16 MiB.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.schemas.errors import RegistryError, RegistryNotAvailable, SchemaError
from barnabas.schemas.settings import RegistrySettings
from barnabas.words.printable import on_one_line

__all__ = ["Answer", "Exchange"]

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_ACCEPT = f"{_CONTENT_TYPE}, application/vnd.schemaregistry+json, application/json"
_MOST_BYTES = 16 << 20
_LONGEST_REASON = 300


class Answer(NamedTuple):
    """The answer of a registry.

    Attributes:
        url: the address.
        status: of HTTP.
        body: the parsed JSON; None if the body is not JSON.
    """

    url: str
    status: int
    body: Any


class Exchange:
    """Sends requests to the addresses of a registry.

    Args:
        settings: the registry.
        sleep: waits for seconds.
    """

    def __init__(self, settings: RegistrySettings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._first = 0
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if any(url.startswith("https:") for url in settings.urls):
            handlers.append(urllib.request.HTTPSHandler(context=_tls(settings)))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"<Exchange urls={','.join(self._settings.urls)}>"

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> Answer:
        """Send a request, and return the answer whose status is below 500.

        Args:
            method: None for a GET, or a POST if there is a body.

        Raises:
            RegistryNotAvailable: no registry answers any attempt.
            RegistryError: the answer is a redirect.
        """
        settings = self._settings
        wait_ms = settings.retries_wait_ms
        for attempt in range(settings.max_retries + 1):
            if attempt:
                self._sleep(min(wait_ms, settings.retries_max_wait_ms) / 1000)
                wait_ms *= 2
            reasons: list[str] = []
            for number in range(len(settings.urls)):
                index = (self._first + number) % len(settings.urls)
                answer, reason = self._try(
                    self._request(settings.urls[index], path, body, method), settings.urls[index]
                )
                if answer is not None:
                    self._first = index
                    return answer
                reasons.append(f"{settings.urls[index]}: {reason}")
        raise RegistryNotAvailable(
            f"the schema registry does not answer ({'; '.join(reasons)}): start it, correct its address, or use a folder of schemas"
        )

    def _try(self, request: urllib.request.Request, url: str) -> tuple[Answer | None, str]:
        """Return the answer, or the reason why the registry gave none."""
        try:
            with self._opener.open(request, timeout=self._settings.timeout_s) as response:
                return self._answer(url, response.status, response), ""
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 429 or error.code >= 500:
                    return None, f"it answers {error.code} {on_one_line(str(error.reason))}".rstrip()
                if 300 <= error.code < 400:
                    where = on_one_line(error.headers.get("Location") or "elsewhere")
                    raise RegistryError(f"{url} is not a schema registry: it redirects to {where}") from None
                return self._answer(url, error.code, error), ""
        except urllib.error.URLError as error:
            return None, _reason(error.reason)
        except (OSError, http.client.HTTPException) as error:
            return None, _reason(error)

    def _request(self, url: str, path: str, body: Any, method: str | None) -> urllib.request.Request:
        headers = {"Accept": _ACCEPT, "User-Agent": "barnabas"}
        request = urllib.request.Request(url + path, headers=headers, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", _CONTENT_TYPE)
        if self._settings.authorization is not None:
            request.add_header("Authorization", self._settings.authorization)
        return request

    def _answer(self, url: str, status: int, response: Any) -> Answer:
        data = response.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise RegistryError(f"an answer of {url} has more than {_MOST_BYTES >> 20} MiB")
        try:
            return Answer(url, status, json.loads(data))
        except ValueError:
            return Answer(url, status, None)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _reason(error: Any) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return on_one_line(text)[:_LONGEST_REASON].lower()


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_location)
    except OSError as error:
        raise SchemaError(f"cannot read the certificates {settings.ca_location}: {error}") from None
    if settings.certificate_location is not None:
        try:
            context.load_cert_chain(settings.certificate_location, settings.key_location, settings.key_password)
        except OSError as error:
            raise SchemaError(f"cannot read the certificate {settings.certificate_location}: {error}") from None
    return context
