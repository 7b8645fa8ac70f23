"""Where a client gets its token for OAUTHBEARER, from Java's settings.

    sasl.oauthbearer.token.endpoint.url     file:///path: the token itself, read at each login
                                            https://…: a token server, asked with client id and secret (client credentials, RFC 6749)
    sasl.oauthbearer.client.credentials.client.id, .client.secret, sasl.oauthbearer.scope, sasl.oauthbearer.header.urlencode
    clientId, clientSecret, scope           the same as options of the login module, from before KIP-1139

Without a URL the options of the login module make an unsecured token (`sasl/oauth_unsecured`), as in Kafka.

A fetched token is used until four fifths of its life have passed (`sasl.login.refresh.window.factor`), then the next login fetches another.

Sources: KIP-768, KIP-1139; Kafka's `DefaultJwtRetriever`, `ClientCredentialsJwtRetriever`, `FileJwtRetriever`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus, unquote, urlsplit

from barnabas.security.jaas import SASL_JAAS_CONFIG, JaasEntry
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_keys import json_part
from barnabas.security.sasl.oauth_server import InvalidToken
from barnabas.security.sasl.oauth_unsecured import unsecured_token
from barnabas.security.setting_error import SecuritySettingError

__all__ = ["TOKEN_ENDPOINT_URL", "TokenRequest", "token_source"]

TOKEN_ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"

_CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
_REFRESH_FACTOR = 0.8


class TokenRequest(NamedTuple):
    """An HTTP POST that a token server answers with JSON."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"<TokenRequest {self.url}>"


def token_source(
    settings: Mapping[str, str],
    entry: JaasEntry,
    now_ms: Callable[[], int],
    fetch: Callable[[TokenRequest], bytes] | None,
) -> Callable[[], str]:
    """Return what returns a token for each login.

    Args:
        fetch: sends a request to a token server and returns the body of its answer; raises OSError. None: only files can be used.

    Raises:
        SecuritySettingError: a setting cannot be used. The text has no secret.
    """
    url = settings.get(TOKEN_ENDPOINT_URL, "").strip()
    if not url:
        unsecured_token(entry.options, now_ms(), SASL_JAAS_CONFIG)
        return lambda: unsecured_token(entry.options, now_ms(), SASL_JAAS_CONFIG)
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        if not path.is_file():
            raise SecuritySettingError(TOKEN_ENDPOINT_URL, f"there is no file {path}")
        return lambda: _from_file(path)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SecuritySettingError(TOKEN_ENDPOINT_URL, "expected a URL that begins with file:, https: or http:")
    if fetch is None:
        raise SecuritySettingError(TOKEN_ENDPOINT_URL, "this command reads tokens from files only; give a file: URL")
    return _FetchedToken(_request(url, settings, entry), fetch, now_ms)


class _FetchedToken:
    def __init__(
        self, request: TokenRequest, fetch: Callable[[TokenRequest], bytes], now_ms: Callable[[], int]
    ) -> None:
        self._request = request
        self._fetch = fetch
        self._now_ms = now_ms
        self._token = ""
        self._used_until_ms = 0.0

    def __call__(self) -> str:
        now_ms = self._now_ms()
        if now_ms >= self._used_until_ms:
            self._token = self._fetched()
            self._used_until_ms = now_ms + _REFRESH_FACTOR * (_expires_at_ms(self._token) - now_ms)
        return self._token

    def _fetched(self) -> str:
        try:
            body = self._fetch(self._request)
        except OSError as error:
            raise LoginFailed(f"the token server {self._request.url} does not answer: {error}") from None
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        token = answer.get("access_token") or answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            raise LoginFailed(f"the token server {self._request.url} answers without an access_token")
        return token.strip()


def _expires_at_ms(token: str) -> float:
    """Return the end of a token; 0 if it does not say, so that it serves one login."""
    try:
        end = json_part(token, 1).get("exp")
    except InvalidToken:
        return 0
    return end * 1000 if isinstance(end, int | float) else 0


def _from_file(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, ValueError):
        raise LoginFailed(f"{TOKEN_ENDPOINT_URL}: the file {path} cannot be read") from None
    if not token or any(character.isspace() for character in token):
        raise LoginFailed(f"{TOKEN_ENDPOINT_URL}: the file {path} has no token, or more than one")
    return token


def _request(url: str, settings: Mapping[str, str], entry: JaasEntry) -> TokenRequest:
    values = []
    for name, option in ((f"{_CREDENTIALS}.id", "clientId"), (f"{_CREDENTIALS}.secret", "clientSecret")):
        value = (settings.get(name) or entry.options.get(option) or "").strip()
        if not value:
            raise SecuritySettingError(name, "is missing, and the token server asks for it")
        values.append(value)
    scope = (settings.get("sasl.oauthbearer.scope") or entry.options.get("scope") or "").strip()
    if settings.get("sasl.oauthbearer.header.urlencode", "false").lower() == "true":
        values = [quote_plus(value) for value in values]
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {base64.b64encode(':'.join(values).encode()).decode()}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    # Always encoded: a scope with a space or an ampersand would be another request.
    body = "grant_type=client_credentials" + (f"&scope={quote_plus(scope)}" if scope else "")
    return TokenRequest(url, headers, body.encode())
