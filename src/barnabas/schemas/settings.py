"""The options of a registry, by the names that Confluent's clients give them.

    source_of("http://localhost:8081")
    source_of({"url": "https://one:8081,https://two:8081", "basic.auth.user.info": "name:password"})

| option | default | meaning |
|---|---|---|
| `url` | | the addresses, separated by commas; `https://name:password@host` has credentials in it |
| `basic.auth.user.info` | | `name:password` |
| `bearer.auth.token` | | a token, instead |
| `ssl.ca.location` | the system's | the certificates that sign the registry's, as a PEM file |
| `ssl.certificate.location`, `ssl.key.location`, `ssl.key.password` | | the client's certificate and key |
| `timeout` | 10 | seconds until a connection or an answer counts as lost |
| `max.retries` | 3 | how often all addresses are tried again after the first time |
| `retries.wait.ms`, `retries.max.wait.ms` | 200, 5000 | the first wait between tries, and the longest; each is twice the one before |
| `cache.latest.ttl.sec` | 300 | how long an answer about a subject counts; one about an id counts for ever |

The options go to Spark's executors with the query, credentials too. No message and no repr has them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from barnabas.schemas.errors import SchemaError
from barnabas.words.nearest import did_you_mean

__all__ = ["RegistrySettings"]

_USER_INFO = "basic.auth.user.info"
_TOKEN = "bearer.auth.token"
_SECONDS = {"timeout": ("timeout_s", 10.0), "cache.latest.ttl.sec": ("latest_ttl_s", 300.0)}
_COUNTS = {
    "max.retries": ("max_retries", 3),
    "retries.wait.ms": ("retries_wait_ms", 200),
    "retries.max.wait.ms": ("retries_max_wait_ms", 5_000),
}
_FILES = {
    "ssl.ca.location": "ca_location",
    "ssl.certificate.location": "certificate_location",
    "ssl.key.location": "key_location",
    "ssl.key.password": "key_password",
}
_KNOWN = ("url", _USER_INFO, _TOKEN, *_SECONDS, *_COUNTS, *_FILES)


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Where a registry is and how it is asked; without credentials in its repr."""

    urls: tuple[str, ...]
    authorization: str | None = field(default=None, repr=False)
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    timeout_s: float = 10.0
    max_retries: int = 3
    retries_wait_ms: int = 200
    retries_max_wait_ms: int = 5_000
    latest_ttl_s: float = 300.0

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> RegistrySettings:
        """Return the settings of an address, or of options.

        Raises:
            SchemaError: an option is unknown or not valid.
        """
        options = {"url": given} if isinstance(given, str) else dict(given)
        for name in options:
            if name not in _KNOWN:
                raise SchemaError(f"a schema registry has no option '{name}'{did_you_mean(str(name), _KNOWN)}")
        urls, user_info = _urls(str(options.get("url") or ""))
        found: dict[str, Any] = {"urls": urls, "authorization": _authorization(options, user_info)}
        for name, (attribute, seconds) in _SECONDS.items():
            found[attribute] = _number(options, name, seconds, float)
        for name, (attribute, count) in _COUNTS.items():
            found[attribute] = _number(options, name, count, int)
        if found["timeout_s"] == 0:
            raise SchemaError("the registry's option timeout must be positive")
        found |= {attribute: options.get(name) for name, attribute in _FILES.items()}
        if found["key_location"] and not found["certificate_location"]:
            raise SchemaError("the registry's option ssl.key.location needs ssl.certificate.location")
        return cls(**found)


def _urls(text: str) -> tuple[tuple[str, ...], str | None]:
    """Return the addresses without credentials, and the credentials."""
    found: list[str] = []
    user_infos: set[str] = set()
    for each in filter(None, (part.strip() for part in text.split(","))):
        parts = _split(each)
        user_info, _, host = parts.netloc.rpartition("@")
        if user_info:
            user_infos.add(":".join(unquote(part) for part in user_info.split(":", 1)))
        found.append(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))
    if not found:
        raise SchemaError("a schema registry needs an address, for example http://localhost:8081")
    if len(user_infos) > 1:
        raise SchemaError(f"the addresses of a schema registry have different credentials: give one {_USER_INFO}")
    return tuple(found), next(iter(user_infos), None)


def _split(url: str) -> SplitResult:
    without = url.rpartition("@")[2]  # a message must not have the credentials
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise SchemaError(f"'{without}' is not the address of a schema registry: write http://HOST:PORT")
    return parts


def _authorization(options: Mapping[str, Any], in_url: str | None) -> str | None:
    given, token = options.get(_USER_INFO), options.get(_TOKEN)
    if sum(each is not None for each in (given, token, in_url)) > 1:
        raise SchemaError(f"give a schema registry one of {_USER_INFO}, {_TOKEN} and credentials in its address")
    if token is not None:
        return f"Bearer {token}"
    user_info = given if given is not None else in_url
    if user_info is None:
        return None
    if ":" not in user_info:
        raise SchemaError(f"the registry's option {_USER_INFO} must be NAME:PASSWORD")
    return "Basic " + base64.b64encode(str(user_info).encode()).decode()


def _number(options: Mapping[str, Any], name: str, default: float, kind: Callable[[Any], float]) -> float:
    try:
        found = kind(options.get(name, default))
    except (TypeError, ValueError):
        raise SchemaError(f"the registry's option {name} must be a number, not '{options[name]}'") from None
    if not 0 <= found < 10**9:
        raise SchemaError(f"the registry's option {name} must not be negative")
    return found
