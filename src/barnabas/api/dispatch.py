"""From a request's frame to its handler, and from its response to bytes.

    frame → header → known API and version? → decode → handler → response | coroutine | future | None → bytes

The connection owns order and back-pressure; this module owns the answer to one request. `Dispatcher.dispatch` runs the
handler, a coroutine up to its first wait (`steps`); when it must wait, the connection keeps the future that `dispatch` returns and
comes back with `complete`.

Nothing of this holds the loop for long: a frame above `LARGE_FRAME` is decoded in the executor and its response is encoded there, as is a
response of more than `LARGE_RESPONSE` elements; handlers walk long arrays in slices.

What a bad request gets is what Apache Kafka 4.3 gives:

- ApiVersions of an unknown version: a version 0 body with UNSUPPORTED_VERSION and ApiVersions' own range (KIP-511).
- An unknown API key, a version outside Kafka's range, a body that does not decode: `RefusedRequest`, and the connection closes.
- An API of Kafka's that is not served here yet, in a version Kafka serves: that API's own response carrying
  UNSUPPORTED_VERSION, so that a client learns why.
- Bytes after a body that decodes: ignored, as Kafka does.
- A handler's `KafkaError`: the API's own response carrying that error; any other exception is ours, is logged with its
  trace, and goes out as UNKNOWN_SERVER_ERROR.

Invariants: every accepted request yields exactly one of response, future, or None; only Produce yields None.

Sources: Kafka's `SocketServer.Processor.processCompletedReceives`, `RequestContext.parseRequest`, `KafkaApis.handle`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import struct
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, NamedTuple, Protocol

from barnabas.api import APIS, max_version
from barnabas.api.context import BrokerServices, ConnectionInfo, RequestContext, Settings
from barnabas.api.error_response import error_response
from barnabas.api.throttling import Accounting, settle
from barnabas.protocol.api_keys import ApiDescription, ApiKey, api, response_header_version
from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.framing import parse_request_header
from barnabas.protocol.message import Struct
from barnabas.protocol.primitives import RecordSlice
from barnabas.steps import start, step

__all__ = ["Dispatcher", "Observer", "Output", "RefusedRequest"]

log = logging.getLogger(__name__)

Output = list[bytearray | RecordSlice]
"""A response as it goes to the socket: bytes in order, and slices of log files between them."""

LARGE_FRAME = 32 * 1024
"""Bytes of a request above which it is decoded off the loop; 32 KB of the shortest elements take some 20 ms. Produce is all records."""

LARGE_RESPONSE = 10_000
"""Elements of a response above which it is encoded off the loop; so many take some 15 ms."""

SAMPLES = 8

_LISTS = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
    }
)
"""APIs whose response may be far longer than their request."""

_API_VERSIONS = 18
_PREFIX = struct.Struct(">ii")
_SIZE = struct.Struct(">i")


class RefusedRequest(Exception):
    """The peer sent what Kafka answers by closing the connection; the text is the reason, for one line of log."""


class Observer(Protocol):
    """Who counts requests."""

    def answered(self, context: RequestContext, response: Any, output: Output | None, total_ns: int) -> None:
        """A request has its response, or none as a Produce with acks=0; `total_ns` includes its waiting."""
        ...


class _Encoded(NamedTuple):
    """A response that is bytes already."""

    output: Output | None


class Route:
    """One API, resolved: its classes, its handler and the versions answered."""

    __slots__ = (
        "carries_records",
        "handle",
        "key",
        "lists",
        "max_version",
        "min_version",
        "name",
        "request",
        "response",
    )

    def __init__(
        self, description: ApiDescription, handle: Callable[..., Any], min_version: int, max_version: int
    ) -> None:
        self.key = int(description.key)
        self.name = description.name
        self.handle = handle
        self.min_version = min_version
        self.max_version = max_version
        self.request: Any = description.request_class
        self.response: Any = description.response_class
        self.carries_records = self.key in (ApiKey.FETCH, ApiKey.SHARE_FETCH)
        self.lists = self.key in _LISTS

    def __repr__(self) -> str:
        return f"Route({self.name} v{self.min_version}-{self.max_version})"


def _not_served(context: RequestContext, request: Any) -> Any:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "This API is not served yet.")


def _resolve(key: int, config: Settings) -> Route:
    """Find an API's route; the handler's module is imported here, at the API's first request."""
    description = api(key)
    served = APIS.get(key)
    if served is not None:
        module = importlib.import_module(f"barnabas.api.{served.module}")
        return Route(description, module.handle, served.min_served, max_version(key, config))
    if "broker" not in description.listeners:
        raise RefusedRequest(f"{description.name} is served on controller listeners only")
    return Route(description, _not_served, description.min_version, description.latest_stable)


class Dispatcher:
    """Hands requests to handlers; one for a broker.

    Args:
        services: what handlers may use.
        observer: told of each answered request, for metrics.
    """

    def __init__(self, services: BrokerServices, observer: Observer | None = None) -> None:
        self._services = services
        self._quotas = services.quotas
        self._observer = observer
        self._routes: dict[int, Route] = {}

    def route(self, key: int) -> Route:
        """The API's route.

        Raises:
            RefusedRequest: no such API, or none that this kind of listener serves.
        """
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = _resolve(key, self._services.config)
        return route

    def dispatch(
        self, connection: ConnectionInfo, frame: memoryview
    ) -> tuple[RequestContext, Output | asyncio.Future[Any] | None]:
        """Handle one request.

        Args:
            frame: the request without its length; handlers may keep nothing of it beyond this call.

        Returns:
            The context, and the response's bytes with their length in front, None when none is wanted, or a future: when it
            is done the connection calls `complete` for the bytes.

        Raises:
            RefusedRequest: close the connection; the text says why.
        """
        is_counted = self._observer is not None or self._quotas.is_enabled
        started_ns = self._services.monotonic_ns() if is_counted else 0
        try:
            header, position = parse_request_header(frame)
        except KafkaError as error:
            raise RefusedRequest(f"request header: {error.message}") from None
        key, version = header.api_key, header.api_version
        route = self._routes.get(key) or self.route(key)
        context = RequestContext(self._services, connection, key, version, header.correlation_id, header.client_id)
        if not route.min_version <= version <= route.max_version:
            if key == _API_VERSIONS:
                context.version = 0
                return context, self.encode(context, self._unknown_api_versions())
            raise RefusedRequest(f"{route.name} version {version} is not served")
        if is_counted:
            context.accounting = Accounting(started_ns, len(frame))
        if len(frame) > LARGE_FRAME and key != ApiKey.PRODUCE:
            response: Any = start(self._answer_large(context, route, bytes(frame[position:])), self._services.loop)
        else:
            request = _decode(route, version, frame, position)
            context.request = request
            try:
                response = route.handle(context, request)
                if route.lists:
                    response = self._answer_list(context, response)
                if type(response) is CoroutineType:
                    response = step(response, self._services.loop)
            except Exception as error:
                response = self._failed(context, error)
        if isinstance(response, asyncio.Future):
            if response.done():
                return context, self.complete(context, response)
            if context.accounting is not None:
                context.accounting.busy_ns = self._services.monotonic_ns() - started_ns
            return context, response
        return context, self._encoded(context, response)

    def complete(self, context: RequestContext, future: asyncio.Future[Any]) -> Output | None:
        """The bytes of a response that had to wait; `future` is done. Raises as `dispatch`, also if it was cancelled."""
        if future.cancelled():
            raise RefusedRequest(f"{context!r} was cancelled")
        error = future.exception()
        if isinstance(error, RefusedRequest):
            raise error
        return self._encoded(context, future.result() if error is None else self._failed(context, error))

    async def _answer_large(self, context: RequestContext, route: Route, body: bytes) -> _Encoded:
        """Handle a request whose decoding and encoding would hold the loop."""
        run = self._services.loop.run_in_executor
        request = context.request = await run(None, _decode, route, context.version, memoryview(body), 0)
        try:
            response = route.handle(context, request)
            if isinstance(response, Awaitable):
                response = await response
        except Exception as error:
            response = self._failed(context, error)
        return await self._encode_apart(context, response)

    async def _answer_list(self, context: RequestContext, handled: Any) -> Any:
        response = await handled if isinstance(handled, Awaitable) else handled
        return await self._encode_apart(context, response) if _elements(response) > LARGE_RESPONSE else response

    async def _encode_apart(self, context: RequestContext, response: Any) -> _Encoded:
        self._charge(context, response)
        output = None
        if response is not None:
            output = await self._services.loop.run_in_executor(None, self.encode, context, response)
        self._observe(context, response, output)
        return _Encoded(output)

    def _encoded(self, context: RequestContext, response: Any) -> Output | None:
        if type(response) is _Encoded:
            return response.output
        if context.accounting is None:
            context.request = None
            return None if response is None else self.encode(context, response)
        self._charge(context, response)
        output = None if response is None else self.encode(context, response)
        self._observe(context, response, output)
        return output

    def _charge(self, context: RequestContext, response: Any) -> None:
        """Charge the client's quotas with the request, before its response is encoded: they may have it say a throttle time."""
        accounting, services = context.accounting, self._services
        if accounting is not None:
            accounting.busy_ns = accounting.busy_ns or services.monotonic_ns() - accounting.started_ns
            if self._quotas.is_enabled:
                settle(context, context.request, response, services.now_ms())
        context.request = None

    def _observe(self, context: RequestContext, response: Any, output: Output | None) -> None:
        accounting = context.accounting
        if accounting is not None and self._observer is not None:
            self._observer.answered(context, response, output, self._services.monotonic_ns() - accounting.started_ns)

    def encode(self, context: RequestContext, response: Any) -> Output:
        """Length, response header and body, as few parts as can be."""
        try:
            return self._encode(context, response)
        except EncodeError as error:
            # A handler put into the response what this version cannot carry: ours, and the client must not wait for ever.
            log.error("%r has a response that cannot be encoded: %s", context, error.message)
            raise RefusedRequest("its response cannot be encoded") from None

    def _encode(self, context: RequestContext, response: Any) -> Output:
        version = context.version
        head = bytearray(_PREFIX.pack(0, context.correlation_id))
        if response_header_version(context.api_key, version):
            head.append(0)
        if not self._routes[context.api_key].carries_records:
            response.write(head, version)
            _SIZE.pack_into(head, 0, len(head) - 4)
            return [head]
        parts: Output = response.encode_parts(version)
        if parts and isinstance(parts[0], bytearray):
            head += parts[0]
            parts[0] = head
        else:
            parts.insert(0, head)
        size = sum(len(part) if isinstance(part, bytearray) else part.size for part in parts)
        _SIZE.pack_into(head, 0, size - 4)
        return parts

    def _failed(self, context: RequestContext, error: BaseException) -> Any:
        request = context.request
        if isinstance(error, KafkaError):
            code, message = error.code, error.message
        elif isinstance(error, asyncio.CancelledError):
            raise error
        else:
            log.error("%r failed, client %s", context, context.connection.connection_id, exc_info=error)
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if context.api_key == ApiKey.PRODUCE and request.acks == 0:
            context.close_connection = True
            return None
        return error_response(context.api_key, context.version, request, code, message)

    def _unknown_api_versions(self) -> Any:
        own = APIS[_API_VERSIONS]
        response = self._routes[_API_VERSIONS].response
        entry = response.ApiVersion(api_key=_API_VERSIONS, min_version=own.min_version, max_version=own.max_version)
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[entry])


def _decode(route: Route, version: int, frame: memoryview, position: int) -> Any:
    try:
        request, _ = route.request.read(frame, position, version)
    except MalformedMessage as error:
        raise RefusedRequest(f"malformed {route.name} request, version {version}: {error}") from None
    return request


def _elements(message: Struct) -> float:
    """Estimate how many elements the arrays of a message have, those of nested arrays included, from a few elements of each."""
    total = 0.0
    for name in message.FIELDS:
        value = getattr(message, name)
        if type(value) is list and value:
            each = 1.0
            if isinstance(value[0], Struct):
                sample = value[:: len(value) // SAMPLES or 1]
                each += sum(map(_elements, sample)) / len(sample)
            total += len(value) * each
    return total
