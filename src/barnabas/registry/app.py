"""The registry as an ASGI application: Confluent's routes.

A subject may have any character, a slash among them, so routes are found in the path as it was sent, before `%2F` becomes a slash.

On loopback a request must name this machine as its `Host`, and no page of another site may ask (`http_access`). A token is asked for if
the registry has one.

Source: Confluent's Schema Registry API reference.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.http_access import BadTokenFile, is_loopback, is_own_host, read_token, shows_token
from barnabas.registry import schema_routes, setting_routes, subject_routes
from barnabas.registry.asked import Asked
from barnabas.registry.problems import Problem
from barnabas.registry.registry import Registry

__all__ = ["registry_app"]

logger = logging.getLogger(__name__)

MEDIA_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
BODY_BYTES_MAX = 4 << 20
Route = Callable[[Asked], Awaitable[Any]]


async def _root(asked: Asked) -> dict[str, Any]:
    return {}


async def _contexts(asked: Asked) -> list[str]:
    return ["."]


ROUTES: Mapping[str, Mapping[str, Route]] = {
    "": {"GET": _root},
    "contexts": {"GET": _contexts},
    "schemas": {"GET": schema_routes.list_schemas},
    "schemas/types": {"GET": schema_routes.schema_types},
    "schemas/ids/{id}": {"GET": schema_routes.schema},
    "schemas/ids/{id}/schema": {"GET": schema_routes.schema_text},
    "schemas/ids/{id}/subjects": {"GET": schema_routes.subjects_of_schema},
    "schemas/ids/{id}/versions": {"GET": schema_routes.versions_of_schema},
    "subjects": {"GET": subject_routes.list_subjects},
    "subjects/{subject}": {"POST": subject_routes.look_up, "DELETE": subject_routes.delete_a_subject},
    "subjects/{subject}/versions": {"GET": subject_routes.list_versions, "POST": subject_routes.post_version},
    "subjects/{subject}/versions/{version}": {
        "GET": subject_routes.version,
        "DELETE": subject_routes.delete_a_version,
    },
    "subjects/{subject}/versions/{version}/schema": {"GET": subject_routes.version_text},
    "subjects/{subject}/versions/{version}/referencedby": {"GET": subject_routes.referenced_by},
    "compatibility/subjects/{subject}/versions": {"POST": subject_routes.check_against_all},
    "compatibility/subjects/{subject}/versions/{version}": {"POST": subject_routes.check_against_version},
    "config": {
        "GET": setting_routes.config,
        "PUT": setting_routes.put_config,
        "DELETE": setting_routes.delete_config,
    },
    "config/{subject}": {
        "GET": setting_routes.config,
        "PUT": setting_routes.put_config,
        "DELETE": setting_routes.delete_config,
    },
    "mode": {"GET": setting_routes.mode, "PUT": setting_routes.put_mode, "DELETE": setting_routes.delete_mode},
    "mode/{subject}": {
        "GET": setting_routes.mode,
        "PUT": setting_routes.put_mode,
        "DELETE": setting_routes.delete_mode,
    },
}


def registry_app(registry: Registry, *, host: str = "127.0.0.1", token_file: str | None = None) -> ASGIApp:
    """Return the application, which starts and stops the registry.

    Args:
        host: that it listens on.
        token_file: with the one token that requests must show; None to ask for none.
    """

    return _Routes(registry, host, token_file)


class _Routes:
    def __init__(self, registry: Registry, host: str, token_file: str | None) -> None:
        self._registry = registry
        self._host = host
        self._token_file = token_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._registry.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._registry.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._check_access(request)
            found = await self._found(request)
            status = 200
        except Problem as problem:
            found, status = problem.to_json(), problem.status
        await _response(found, status, request)(scope, receive, send)

    def _check_access(self, request: Request) -> None:
        """Raise a problem if a request may not be served: 401, 403."""
        host, origin = request.headers.get("host"), request.headers.get("origin")
        is_local = is_loopback((request.scope.get("server") or ("",))[0])
        if host is not None and is_local and not is_own_host(host, self._host):
            raise Problem(403, 40301, "This registry answers to localhost, and not to another name (Host).")
        if origin is not None and urlsplit(origin).netloc.lower() != (host or "").lower():
            raise Problem(403, 40301, "A page of another site may not ask this registry.")
        if self._token_file is None:
            return
        try:
            is_shown = shows_token(request.headers.get("authorization", ""), read_token(self._token_file))
        except BadTokenFile:
            logger.warning("The file of the token cannot be used any longer, so every request is refused")
            is_shown = False
        if not is_shown:
            raise Problem(401, 40101, "Show the token: Authorization: Bearer TOKEN.")

    async def _found(self, request: Request) -> Any:
        methods, parts = _route(request.scope)
        route = methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            raise Problem(405, 405, "HTTP 405 Method Not Allowed")
        query = dict(parse_qsl(request.url.query, errors="replace"))
        return await route(Asked(self._registry, parts, query, await _content(request)))


def _route(scope: Scope) -> tuple[Mapping[str, Route], dict[str, str]]:
    path = scope.get("raw_path") or scope["path"].encode()
    given = path.decode("ascii", "replace").strip("/").split("/")
    for pattern, methods in ROUTES.items():
        names = pattern.split("/")
        if len(names) == len(given) and all(
            name.startswith("{") or name == part for name, part in zip(names, given, strict=True)
        ):
            parts = {
                name.strip("{}"): unquote(part) for name, part in zip(names, given, strict=True) if name.startswith("{")
            }
            return methods, parts
    raise Problem(404, 404, "HTTP 404 Not Found")


async def _content(request: Request) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_BYTES_MAX:
            raise Problem(413, 413, f"A request has at most {BODY_BYTES_MAX} bytes.")
    return bytes(content)


def _response(found: Any, status: int, request: Request) -> Response:
    # The text of a schema is sent as it is.
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    accepted = request.headers.get("accept", "")
    media_type = next((each for each in MEDIA_TYPES if each in accepted), MEDIA_TYPES[0])
    return Response(text, status, media_type=media_type)
