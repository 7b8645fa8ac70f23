"""From a request's frame to its handler, and from its response to bytes.

    frame → header → known API and version? → decode → handler → response | coroutine | future | None → bytes

The connection is responsible for order and back-pressure, this module for one request. `Dispatcher.dispatch` steps the handler up to
its first wait (`steps`). If the handler must wait, `dispatch` returns a future, and the connection calls `complete` when it is done.

No step holds the loop for long. A request with more than `LONG_ARRAYS` elements in its arrays, or above `LARGE_FRAME`, is a long one:
the executor decodes it and encodes its response. The executor also handles it if the handler only reads (`_READERS`); the other
handlers walk long arrays in slices, and the controller answers in the executor. Every response with more than `LARGE_RESPONSE`
elements is encoded there.

A bad request gets the response of Apache Kafka 4.3:

- ApiVersions of an unknown version: a version 0 body with UNSUPPORTED_VERSION and ApiVersions' own range (KIP-511).
- An unknown API key, a version outside Kafka's range, a body that does not decode: `RefusedRequest`, and the connection closes.
- An API that Kafka serves and barnabas does not: that API's own response with UNSUPPORTED_VERSION, so that the client learns why.
- Bytes after a body that decodes: ignored.
- A handler's `KafkaError`: the API's own response with that error. Any other exception is a bug here: it is logged with its trace, and
  the client gets UNKNOWN_SERVER_ERROR.

Invariant: an accepted request yields exactly one of response, future and None; only Produce yields None, and a test's handler
(`intercept`).

Sources: Kafka's `SocketServer.Processor.processCompletedReceives`, `RequestContext.parseRequest`, `KafkaApis.handle`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from types import CoroutineType
from typing import Any, NamedTuple, Protocol, cast

from barnabas.api import max_version
from barnabas.api.context import (
    AnyContext,
    BrokerServices,
    ConnectionInfo,
    ControllerContext,
    ControllerServices,
    RequestContext,
)
from barnabas.api.error_response import error_response
from barnabas.api.let_go import let_go
from barnabas.api.throttling import Accounting, settle
from barnabas.protocol.api_keys import ApiDescription, ApiKey, api
from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, LongMessage, MalformedMessage
from barnabas.protocol.framing import parse_request_header
from barnabas.protocol.message import UNLIMITED, Struct
from barnabas.protocol.primitives import RecordSlice
from barnabas.repeated_lines import RepeatedLines
from barnabas.steps import start, step, turn

__all__ = ["Dispatcher", "Observer", "Output", "RefusedRequest"]

logger = logging.getLogger(__name__)

Output = list[bytearray | RecordSlice]
"""An encoded response: bytes, and slices of log files between them, in order."""

LARGE_FRAME = 32 * 1024
"""The executor decodes larger requests. Not Produce: it is all records."""

LONG_ARRAYS = 1_000
"""The executor decodes requests whose arrays have more elements than these; their handlers need up to 30 µs for each."""

LARGE_RESPONSE = 10_000
"""The executor encodes responses with more elements than these, which take some 15 ms."""

FAILURE_LINES_MAX = 5
"""Lines about the failed requests of an API that are logged in a minute, before they are counted."""

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
        ApiKey.ELECT_LEADERS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.LIST_CONFIG_RESOURCES,
    }
)
"""APIs with responses that may be far longer than their requests."""

_READERS = frozenset(
    {
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    }
)
"""APIs with handlers that read nothing but the request and the metadata image, so that any thread may run them."""

_API_VERSIONS = 18
_PREFIX = struct.Struct(">ii")
_SIZE = struct.Struct(">i")


class RefusedRequest(Exception):
    """A request for which Kafka closes the connection; the text is the reason, for one line of log."""


class Observer(Protocol):
    """A counter of requests."""

    def answered(self, context: AnyContext, response: Any, output: Output | None, total_ns: int) -> None:
        """Count a request; `response` is None for a Produce with acks=0, `total_ns` includes the wait."""
        ...


class _Encoded(NamedTuple):
    """A response that is already encoded."""

    output: Output | None


class Route:
    """One API: its classes, its handler and the served versions.

    Attributes:
        tagged_header_from: the first version whose response header has a tag buffer.
    """

    __slots__ = (
        "carries_records",
        "handle",
        "key",
        "lists",
        "max_version",
        "min_version",
        "name",
        "only_reads",
        "request",
        "response",
        "tagged_header_from",
    )
    handle: Callable[..., Any]

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
        self.tagged_header_from = description.tagged_response_header_from
        self.carries_records = self.key in (ApiKey.FETCH, ApiKey.SHARE_FETCH)
        self.lists = self.key in _LISTS
        self.only_reads = self.key in _READERS

    def __repr__(self) -> str:
        return f"<Route api={self.name} versions={self.min_version}-{self.max_version}>"


def _not_served(context: AnyContext, request: Any) -> Any:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "This API is not served yet.")


def _resolve(key: int, services: BrokerServices | ControllerServices) -> Route:
    """Make an API's route, and import the handler's module, at the API's first request."""
    description = api(key)
    served = services.apis.get(key)
    if served is not None:
        module = importlib.import_module(f"barnabas.api.{served.module}")
        return Route(description, module.handle, served.min_served, max_version(key, services.config, services.apis))
    if services.listener_kind not in description.listeners:
        raise RefusedRequest(f"{description.name} is served on {' and '.join(description.listeners)} listeners only")
    return Route(description, _not_served, description.min_version, description.latest_stable)


class Dispatcher:
    """The dispatcher of one broker, or of one controller.

    Args:
        services: for the handlers; they decide which APIs are served.
        observer: counts requests, for metrics.
        lines: of log about failed requests, shared by the node.
    """

    def __init__(
        self,
        services: BrokerServices | ControllerServices,
        observer: Observer | None = None,
        lines: RepeatedLines | None = None,
    ) -> None:
        self._services = services
        kind = RequestContext if isinstance(services, BrokerServices) else ControllerContext
        # Each kind of services has its own kind of context.
        self._make_context = cast("Callable[..., AnyContext]", kind)
        self._quotas = services.quotas
        self._observer = observer
        self._lines = lines or RepeatedLines(services.loop)
        self._routes: dict[int, Route] = {}

    def route(self, key: int) -> Route:
        """Return an API's route.

        Raises:
            RefusedRequest: the API does not exist, or is not for this kind of listener.
        """
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = _resolve(key, self._services)
        return route

    def intercept(self, key: int, handle: Callable[..., Any] | None) -> None:
        """Let another handler answer the requests of an API, for a test; None: its own one again.

        It may set `close_connection` and return None for any API: the client gets no response then.
        """
        self._routes[key] = route = _resolve(key, self._services)
        if handle is not None:
            route.handle = handle
            # Only a response that exists can be measured, and only on the loop may a handler close its connection.
            route.lists = route.only_reads = False

    def own_handler(self, key: int) -> Callable[..., Any]:
        """Return the handler that an API has by itself."""
        return _resolve(key, self._services).handle

    def slow_down(self, seconds: float, is_met: Callable[[str | None], bool]) -> None:
        """Let requests wait before they are handled, for a test; 0 seconds: no more.

        Args:
            is_met: whether requests with a client id wait.
        """
        # While nothing is slow, a request pays nothing: the attribute of the instance hides the method.
        vars(self).pop("dispatch", None)
        if seconds:
            vars(self)["dispatch"] = partial(self._dispatch_later, seconds, is_met)

    def _dispatch_later(
        self, seconds: float, is_met: Callable[[str | None], bool], connection: ConnectionInfo, frame: memoryview
    ) -> tuple[AnyContext, Output | asyncio.Future[Any] | None]:
        try:
            header, _ = parse_request_header(frame)
        except KafkaError:
            header = None
        if header is None or not is_met(header.client_id):
            return Dispatcher.dispatch(self, connection, frame)
        key, version = header.api_key, header.api_version
        context = self._make_context(self._services, connection, key, version, header.correlation_id, header.client_id)
        later = self._handle_later(context, connection, bytearray(frame), seconds)
        return context, self._services.loop.create_task(later)

    async def _handle_later(
        self, context: AnyContext, connection: ConnectionInfo, frame: bytearray, seconds: float
    ) -> _Encoded:
        await asyncio.sleep(seconds)
        inner, result = Dispatcher.dispatch(self, connection, memoryview(frame))
        if isinstance(result, asyncio.Future):
            try:
                await asyncio.wait((result,))
            except asyncio.CancelledError:
                result.cancel()
                raise
            result = self.complete(inner, result)
        context.close_connection, context.accounting = inner.close_connection, inner.accounting
        return _Encoded(result)

    @property
    def monotonic_ns(self) -> Callable[[], int]:
        """The clock for how long requests take."""
        return self._services.monotonic_ns

    def dispatch(
        self, connection: ConnectionInfo, frame: memoryview
    ) -> tuple[AnyContext, Output | asyncio.Future[Any] | None]:
        """Handle one request.

        Args:
            frame: the request without its length; handlers must not keep a view of it after this call.

        Returns:
            The context, and one of: the response's bytes with their length in front; None if the client wants no response; a
            future, for which the connection calls `complete` when it is done.

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
        context = self._make_context(self._services, connection, key, version, header.correlation_id, header.client_id)
        if not route.min_version <= version <= route.max_version:
            if key == _API_VERSIONS:
                context.version = 0
                return context, self.encode(context, self._unknown_api_versions())
            raise RefusedRequest(f"{route.name} version {version} is not served")
        if is_counted:
            context.accounting = Accounting(started_ns, len(frame))
        request = None
        if len(frame) <= LARGE_FRAME or key == ApiKey.PRODUCE:
            try:
                request = context.request = _decode(route, version, frame, position, LONG_ARRAYS)
            except LongMessage:
                context.holds_order = key == ApiKey.PRODUCE
        if request is None:
            context.is_long = True
            response: Any = start(self._answer_long(context, route, bytearray(frame[position:])), self._services.loop)
        else:
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

    def complete(self, context: AnyContext, future: asyncio.Future[Any]) -> Output | None:
        """Return the bytes of a response that had to wait; `future` is done. Raises as `dispatch`, and if it was cancelled."""
        if future.cancelled():
            raise RefusedRequest(f"{context!r} was cancelled")
        error = future.exception()
        if isinstance(error, RefusedRequest):
            raise error
        return self._encoded(context, future.result() if error is None else self._failed(context, error))

    async def _answer_long(self, context: AnyContext, route: Route, body: bytearray) -> _Encoded:
        """Handle a request, with its decoding and encoding in the executor."""
        run = self._services.loop.run_in_executor
        request = context.request = await run(None, _decode, route, context.version, memoryview(body), 0)
        try:
            if route.only_reads:
                response = await run(None, route.handle, context, request)
            else:
                response = route.handle(context, request)
            if isinstance(response, Awaitable):
                response = await response
        except Exception as error:
            response = await run(None, self._failed, context, error)
        # What the handler made is freed in this turn, its response in the next ones.
        await turn()
        encoded = await self._encode_apart(context, response)
        await let_go(response)
        await let_go(request)
        return encoded

    async def _answer_list(self, context: AnyContext, handled: Any) -> Any:
        response = await handled if isinstance(handled, Awaitable) else handled
        if _elements(response) <= LARGE_RESPONSE:
            return response
        encoded = await self._encode_apart(context, response)
        await let_go(response)
        return encoded

    async def _encode_apart(self, context: AnyContext, response: Any) -> _Encoded:
        self._charge(context, response)
        output = None
        if response is not None:
            output = await self._services.loop.run_in_executor(None, self.encode, context, response)
        self._observe(context, response, output)
        return _Encoded(output)

    def _encoded(self, context: AnyContext, response: Any) -> Output | None:
        if type(response) is _Encoded:
            return response.output
        if context.accounting is None:
            context.request = None
            return None if response is None else self.encode(context, response)
        self._charge(context, response)
        output = None if response is None else self.encode(context, response)
        self._observe(context, response, output)
        return output

    def _charge(self, context: AnyContext, response: Any) -> None:
        """Charge the client's quotas; they may set the throttle time of the response, so this precedes its encoding."""
        accounting, services = context.accounting, self._services
        if accounting is not None:
            accounting.busy_ns = accounting.busy_ns or services.monotonic_ns() - accounting.started_ns
            if self._quotas.is_enabled:
                settle(context, context.request, response, services.now_ms())
        context.request = None

    def _observe(self, context: AnyContext, response: Any, output: Output | None) -> None:
        accounting = context.accounting
        if accounting is not None and self._observer is not None:
            self._observer.answered(context, response, output, self._services.monotonic_ns() - accounting.started_ns)

    def encode(self, context: AnyContext, response: Any) -> Output:
        """Encode length, response header and body, in as few parts as possible."""
        try:
            return self._encode(context, response)
        except EncodeError as error:
            # A bug in a handler: it used a field that this version does not have. The client must not wait for ever.
            self._log_failure(context, f"{context!r} has a response that cannot be encoded: {error.message}")
            raise RefusedRequest("its response cannot be encoded") from None

    def _encode(self, context: AnyContext, response: Any) -> Output:
        version = context.version
        route = self._routes[context.api_key]
        head = bytearray(_PREFIX.pack(0, context.correlation_id))
        if version >= route.tagged_header_from:
            head.append(0)
        if not route.carries_records:
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

    def _failed(self, context: AnyContext, error: BaseException) -> Any:
        request = context.request
        if isinstance(error, KafkaError):
            code, message = error.code, error.message
        elif isinstance(error, asyncio.CancelledError):
            raise error
        else:
            self._log_failure(context, f"{context!r} failed, client {context.connection.connection_id}", error)
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if context.api_key == ApiKey.PRODUCE and request.acks == 0:
            context.close_connection = True
            return None
        return error_response(context.api_key, context.version, request, code, message)

    def _log_failure(self, context: AnyContext, line: str, error: BaseException | None = None) -> None:
        """Log a bug that a request has found: its sender can send it again."""
        about = f"failed {self._routes[context.api_key].name} requests"
        self._lines.log(logger, logging.ERROR, about, line, at_most=FAILURE_LINES_MAX, error=error)

    def _unknown_api_versions(self) -> Any:
        own = self._services.apis[_API_VERSIONS]
        response = self._routes[_API_VERSIONS].response
        entry = response.ApiVersion(api_key=_API_VERSIONS, min_version=own.min_version, max_version=own.max_version)
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[entry])


def _decode(route: Route, version: int, frame: memoryview, position: int, max_elements: int = UNLIMITED) -> Any:
    try:
        request, _ = route.request.read(frame, position, version, max_elements)
    except MalformedMessage as error:
        raise RefusedRequest(f"malformed {route.name} request, version {version}: {error}") from None
    return request


def _elements(message: Struct) -> float:
    """Estimate the number of elements in all arrays of a message, nested ones too, from a few elements of each."""
    total = 0.0
    for name in message.NESTED:
        value = getattr(message, name)
        if type(value) is list and value:
            each = 1.0
            if isinstance(value[0], Struct):
                sample = value[:: len(value) // SAMPLES or 1]
                each += sum(map(_elements, sample)) / len(sample)
            total += len(value) * each
    return total
