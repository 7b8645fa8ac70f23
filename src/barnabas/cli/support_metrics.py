"""The text of `/metrics` of each node, for a support bundle.

    metrics-NODE.txt      of a broker whose setting `barnabas.metrics.listen` says where it serves them
    metrics-url-1.txt     of the first `--metrics URL`

- A broker that serves on every address is asked at the host that it advertises. Of a broker that serves on the loopback interface of
  another machine, on a port that the system chose, or nowhere, the bundle says so.
- No proxy is asked and no redirect is followed. The token is sent with TLS, or to this machine.
- HTTPS trusts the authorities in `ssl.truststore.*` of the `--command-config` file, or else the system's.
"""

from __future__ import annotations

import http
import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client.admin import Admin, ConfigEntry, ConfigResource, Node, ResourceType
from barnabas.client.bootstrap import format_address
from barnabas.client.librdkafka_names import java_settings
from barnabas.http_access import is_own_host
from barnabas.protocol.errors import KafkaError
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_settings import client_context

if TYPE_CHECKING:
    from typing import IO

__all__ = ["MetricsFetch", "Place", "metrics_url", "places"]

TIMEOUT_S = 5.0
BYTES_MAX = 64 << 20
_LISTEN = "barnabas.metrics.listen"
_KEY_STORES = ("barnabas.metrics.ssl.keystore.location", "barnabas.metrics.ssl.keystore.key")
_EVERY_ADDRESS = ("", "0.0.0.0", "::")
_GIVE = "pass --metrics URL"


class Place(NamedTuple):
    """Where a broker serves its metrics.

    Attributes:
        url: empty if it cannot be asked.
        why: it cannot be asked.
    """

    name: str
    url: str
    why: str = ""


def metrics_url(text: str) -> str:
    """Return the address that `--metrics` gives, with the path `/metrics` if it has none.

    Raises:
        ValueError: it is not an address of HTTP, or has a user; the text says which, without the address.
    """
    try:
        split = urllib.parse.urlsplit(text)
        is_address = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT")
    if split.username is not None:
        raise ValueError("must have no user and password; --metrics-token FILE has the token")
    return split._replace(path=split.path if split.path not in ("", "/") else "/metrics").geturl()


def places(admin: Admin) -> list[Place]:
    """Return where each broker of a cluster serves its metrics.

    Raises:
        KafkaError: no broker answers.
    """
    cluster = admin.describe_cluster()
    resources = {each.id: ConfigResource(ResourceType.BROKER, str(each.id)) for each in cluster.brokers}
    answers = admin.describe_configs(list(resources.values()))
    found = [_place(each, answers[resources[each.id]]) for each in cluster.brokers]
    return [*found, *(Place(_name(each), "", "the broker is fenced") for each in cluster.fenced)]


def _name(broker: Node) -> str:
    return f"metrics-{broker.id}.txt"


def _place(broker: Node, answer: Iterable[ConfigEntry] | KafkaError) -> Place:
    name = _name(broker)
    if isinstance(answer, KafkaError):
        return Place(name, "", str(answer.message))
    # A password is listed without its value, so what tells of TLS is that the setting is there.
    settings = {each.name: each.value or "" for each in answer if not each.is_default}
    host, _, port = settings.get(_LISTEN, "").rpartition(":")
    host = host.strip("[]")
    if not port:
        return Place(name, "", f"the broker's settings name no {_LISTEN} ({_GIVE})")
    if port == "0":
        return Place(name, "", f"the system chose the port ({_GIVE})")
    if host in _EVERY_ADDRESS:
        host = broker.host
    elif is_own_host(host, "") and not is_own_host(broker.host, ""):
        return Place(name, "", f"served on the loopback interface of {broker.host} ({_GIVE})")
    scheme = "https" if any(each in settings for each in _KEY_STORES) else "http"
    return Place(name, f"{scheme}://{format_address(host, int(port))}/metrics")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> None:
        return None


class MetricsFetch:
    """Fetches metrics.

    Args:
        properties: of the command's client; `ssl.*` among them.
        token: which the nodes ask for; empty for none.
    """

    def __init__(self, properties: Mapping[str, str], token: str) -> None:
        self._properties = properties
        self._token = token
        self._context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"<MetricsFetch {'with' if self._token else 'without'} a token>"

    def text(self, url: str) -> str:
        """Return what a node serves there.

        Raises:
            OSError: it does not serve it; the text names the address and the reason.
        """
        split = urllib.parse.urlsplit(url)
        request = urllib.request.Request(url)
        if self._token:
            if split.scheme != "https" and not is_own_host(split.hostname or "", ""):
                raise OSError(f"{url} has no TLS, so the token was not sent there")
            request.add_header("Authorization", f"Bearer {self._token}")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), urllib.request.ProxyHandler({})]
        if split.scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=self._client_context()))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as answer:
                body: bytes = answer.read(BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            error.close()
            remedy = " (pass --metrics-token FILE)" if error.code == http.HTTPStatus.UNAUTHORIZED else ""
            raise OSError(f"{url} answered with HTTP status {error.code}{remedy}") from None
        except urllib.error.URLError as error:
            raise OSError(f"{url} does not answer: {_words(error.reason)}") from None
        except (OSError, http.client.HTTPException) as error:
            raise OSError(f"{url} does not answer: {_words(error)}") from None
        if len(body) > BYTES_MAX:
            raise OSError(f"{url} has more than {BYTES_MAX >> 20} MiB")
        return body.decode(errors="replace")

    def _client_context(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = client_context(java_settings(self._properties))
            except SecuritySettingError as error:
                raise OSError(str(error)) from None
        return self._context


def _words(reason: object) -> str:
    return (getattr(reason, "strerror", None) or str(reason) or type(reason).__name__).lower()
