"""From a request's frame to its handler, and from its response to bytes.

    frame → header → known API and version? → decode → handler → response | None → bytes

The connection is responsible for order and back-pressure, this module for one request. `Dispatcher.dispatch` steps it up to its first
wait (`steps`), and returns a future if it must wait.

No step holds the loop for long. To decode and to encode cannot be divided, so the executor does it for long requests and responses;
`turns` says what is long. Handlers give the loop its turns themselves.

A bad request gets the response of Apache Kafka 4.3:

- ApiVersions of an unknown version: a version 0 body with UNSUPPORTED_VERSION and ApiVersions' own range (KIP-511).
- An unknown API key, a version outside Kafka's range, a body that does not decode: `RefusedRequest`, and the connection closes.
- An API that Kafka serves and barnabas does not: that API's own response with UNSUPPORTED_VERSION, so that the client learns why.
- Bytes after a body that decodes: ignored.
- A handler's `KafkaError`: the API's own response with that error. Any other exception is a bug here: it is logged with its trace, and
  the client gets UNKNOWN_SERVER_ERROR.

Invariant: a handler is a coroutine function of the context and the request, and returns the response. Only Produce may return None,
if its client wants none.

Sources: Kafka's `SocketServer.Processor.processCompletedReceives`, `RequestContext.parseRequest`, `KafkaApis.handle`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from barnabas.api import max_version
from barnabas.api.accounting import Accounting
from barnabas.api.serving.context import (
    AnyContext,
    BrokerServices,
    ConnectionInfo,
    ControllerContext,
    ControllerServices,
    RequestContext,
)
from barnabas.api.serving.error_response import error_response
from barnabas.api.serving.let_go import let_go
from barnabas.api.serving.throttling import settle
from barnabas.protocol.api_keys import ApiDescription, ApiKey, api
from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, LongMessage, MalformedMessage
from barnabas.protocol.framing import SIZE, parse_request_header
from barnabas.protocol.message import UNLIMITED, Message, Struct
from barnabas.protocol.messages import FetchResponse, ShareFetchResponse
from barnabas.protocol.primitives import RecordSlice
from barnabas.repeated_lines import RepeatedLines
from barnabas.steps import run
from barnabas.turns import ELEMENT, REQUEST, TURN, is_long, next_turn, spend

__all__ = ["Dispatcher", "Observer", "Output", "RefusedRequest", "Route"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

Handle = Callable[..., Awaitable[Message | None]]
"""An API's handler: awaits of the context and the request the response."""

Output = list[bytearray | RecordSlice]
"""An encoded response: bytes, and slices of log files between them, in order."""
SMALL_BYTES = 16 * 1024
"""Up to so many bytes of slices are read into the response: a copy through the transport is cheaper than another system call."""

BYTES = 16
"""Bytes that are decoded for the cost of one."""

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

_PRODUCE, _API_VERSIONS = 0, 18
_PREFIX = struct.Struct(">ii")


class RefusedRequest(Exception):
    """A request for which Kafka closes the connection; the text is the reason, for one line of log."""


class Observer(Protocol):
    """A counter of requests."""

    def answered(self, context: AnyContext, response: Message | None, output: Output | None, total_ns: int) -> None:
        """Count a request; `response` is None for a Produce with acks=0, `total_ns` includes the wait."""
        ...


class Route:
    """One API: its classes, its handler and the served versions.

    Attributes:
        tagged_header_from: the first version whose response header has a tag buffer.
        check: stands before the handler on a node with an authorizer; None without one.
    """

    __slots__ = (
        "carries_records",
        "check",
        "handle",
        "key",
        "lists",
        "max_version",
        "min_version",
        "name",
        "request",
        "response",
        "tagged_header_from",
    )

    def __init__(self, description: ApiDescription, handle: Handle, min_version: int, max_version: int) -> None:
        self.key = int(description.key)
        self.name = description.name
        self.handle = handle
        self.check: Handle | None = None
        self.min_version = min_version
        self.max_version = max_version
        self.request: type[Message] = description.request_class
        self.response: type[Message] = description.response_class
        self.tagged_header_from = description.tagged_response_header_from
        self.carries_records = self.key in (ApiKey.FETCH, ApiKey.SHARE_FETCH)
        self.lists = self.key in _LISTS

    def __repr__(self) -> str:
        return f"<Route api={self.name} versions={self.min_version}-{self.max_version}>"


async def _not_served(context: AnyContext, request: Message) -> None:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "This API is not served yet.")


def _resolve(key: int, services: BrokerServices | ControllerServices) -> Route:
    """Make an API's route, and import the handler's module, at the API's first request."""
    description = api(key)
    served = services.apis.get(key)
    if served is not None:
        module = importlib.import_module(f"barnabas.api.{served.module}")
        route = Route(description, module.handle, served.min_served, max_version(key, services.config, services.apis))
        if services.authorizer is not None:
            # A node without an authorizer does not import the checks.
            checks = importlib.import_module("barnabas.api.authorization.checks")
            is_broker = isinstance(services, BrokerServices)
            table = checks.BROKER_CHECKS if is_broker else checks.CONTROLLER_CHECKS
            route.check = table.get(key, checks.refused)
        return route
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
        self._loop = services.loop
        self._monotonic_ns = services.monotonic_ns
        self._quotas = services.quotas
        self._observer = observer
        self._lines = lines or RepeatedLines(services.loop)
        self._routes: dict[int, Route] = {}
        self._around: Callable[[Route], object] | None = None

    def around(self, put: Callable[[Route], object]) -> None:
        """Call `put` with each route, once: those that are made already, and others when they are made. It may replace their handlers."""
        self._around = put
        for route in self._routes.values():
            put(route)

    def route(self, key: int) -> Route:
        """Return an API's route.

        Raises:
            RefusedRequest: the API does not exist, or is not for this kind of listener.
        """
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = _resolve(key, self._services)
            if self._around is not None:
                self._around(route)
        return route

    def dispatch(
        self, connection: ConnectionInfo, frame: memoryview
    ) -> tuple[AnyContext, Output | asyncio.Future[Output | None] | None]:
        """Handle one request.

        Args:
            frame: the request without its length; handlers must not keep a view of it after this call.

        Returns:
            The context, and one of: the response's bytes with their length in front; None if the client wants no response; a
            future of these, which fails with `RefusedRequest` too.

        Raises:
            RefusedRequest: close the connection; the text says why.
        """
        spend(REQUEST)
        is_counted = self._observer is not None or self._quotas.is_enabled
        started_ns = self._monotonic_ns() if is_counted else 0
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
        waiting: asyncio.Future[Output | None] | None = run(self._answer(context, route, frame, position), self._loop)
        if waiting is None:
            return context, context.output
        context.has_waited = True
        if context.accounting is not None:
            context.accounting.busy_ns = self._monotonic_ns() - started_ns
        return context, waiting

    async def _answer(self, context: AnyContext, route: Route, frame: memoryview, position: int) -> Output | None:
        """Return the bytes of the response if it has waited, else put them into the context."""
        request = None
        # A Produce is all records, which stay as they are.
        if len(frame) <= TURN or route.key == _PRODUCE or not is_long(len(frame) // BYTES):
            try:
                request = _decode(route, context.version, frame, position, TURN // ELEMENT)
            except LongMessage:
                request = None
        if request is None:
            context.is_long = True
            # Its records are views of the copy, which stays.
            context.holds_order = route.key == _PRODUCE
            request = await self._apart(_decode, route, context.version, memoryview(bytearray(frame[position:])), 0)
        context.request = request
        try:
            if route.check is None:
                response = await route.handle(context, request)
            else:
                response = await route.check(context.asker, request, partial(route.handle, context))
        except Exception as error:
            failed = self._failed
            response = await self._apart(failed, context, error) if context.is_long else failed(context, error)
        if context.accounting is not None:
            self._charge(context, context.accounting, response)
        context.request = None
        output, has_long_response = None, False
        if response is not None:
            has_long_response = context.is_long or (route.lists and is_long(_elements(response)))
            if has_long_response:
                await next_turn()  # The handler's objects are freed in this turn, its response in later ones.
                output = await self._apart(self.encode, context, response)
            else:
                if isinstance(response, FetchResponse | ShareFetchResponse):
                    _read_small(response)
                output = self.encode(context, response)
        if context.accounting is not None and self._observer is not None:
            total_ns = self._monotonic_ns() - context.accounting.started_ns
            self._observer.answered(context, response, output, total_ns)
        if has_long_response:
            await let_go(response)
            await let_go(request)
        if context.has_waited:
            return output
        context.output = output
        return None

    def _apart(self, function: Callable[..., R], *args: object) -> Awaitable[R]:
        """Run in the executor what takes longer than a turn of the loop may."""
        return self._loop.run_in_executor(None, function, *args)

    def _charge(self, context: AnyContext, accounting: Accounting, response: Message | None) -> None:
        """Charge the client's quotas; they may set the throttle time of the response, so this precedes its encoding."""
        accounting.busy_ns = accounting.busy_ns or self._monotonic_ns() - accounting.started_ns
        if self._quotas.is_enabled:
            settle(context, context.request, response, self._services.now_ms())

    def encode(self, context: AnyContext, response: Message) -> Output:
        """Encode length, response header and body, in as few parts as possible."""
        try:
            return self._encode(context, response)
        except EncodeError as error:
            # A bug in a handler: it used a field that this version does not have. The client must not wait for ever.
            self._log_failure(context, f"{context!r} has a response that cannot be encoded: {error.message}")
            raise RefusedRequest("its response cannot be encoded") from None

    def _encode(self, context: AnyContext, response: Message) -> Output:
        version = context.version
        route = self._routes[context.api_key]
        head = bytearray(_PREFIX.pack(0, context.correlation_id))
        if version >= route.tagged_header_from:
            head.append(0)
        if not route.carries_records:
            response.write(head, version)
            SIZE.pack_into(head, 0, len(head) - 4)
            return [head]
        parts: Output = response.encode_parts(version)
        if parts and isinstance(parts[0], bytearray):
            head += parts[0]
            parts[0] = head
        else:
            parts.insert(0, head)
        size = sum(len(part) if isinstance(part, bytearray) else part.size for part in parts)
        SIZE.pack_into(head, 0, size - 4)
        return parts

    def _failed(self, context: AnyContext, error: BaseException) -> Message | None:
        request = context.request
        if isinstance(error, KafkaError):
            code, message = error.code, error.message
        elif isinstance(error, asyncio.CancelledError | RefusedRequest):
            raise error
        else:
            self._log_failure(context, f"{context!r} failed, client {context.connection.connection_id}", error)
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if context.api_key == ApiKey.PRODUCE and request.acks == 0:
            context.close_connection = True
            return None
        failed: Message = error_response(context.api_key, context.version, request, code, message)
        return failed

    def _log_failure(self, context: AnyContext, line: str, error: BaseException | None = None) -> None:
        """Log a bug that a request has found: its sender can send it again."""
        about = f"failed {self._routes[context.api_key].name} requests"
        self._lines.log(logger, logging.ERROR, about, line, at_most=FAILURE_LINES_MAX, error=error)

    def _unknown_api_versions(self) -> Message:
        own = self._services.apis[_API_VERSIONS]
        response: Any = self._routes[_API_VERSIONS].response
        entry = response.ApiVersion(api_key=_API_VERSIONS, min_version=own.min_version, max_version=own.max_version)
        answer: Message = response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[entry])
        return answer


def _decode(route: Route, version: int, frame: memoryview, position: int, max_elements: int = UNLIMITED) -> Message:
    try:
        request, _ = route.request.read(frame, position, version, max_elements)
    except MalformedMessage as error:
        raise RefusedRequest(f"malformed {route.name} request, version {version}: {error}") from None
    return request


def _read_small(response: FetchResponse | ShareFetchResponse) -> None:
    """Read the records of a small response into it; a partition whose log cannot be read gets the error, and the others their records.

    A larger response has slices, and its connection ends if one of them cannot be read: part of it may have been sent.
    """
    slices = [
        (each, each.records)
        for topic in response.responses
        for each in topic.partitions
        if each.records is not None and not isinstance(each.records, bytes | bytearray | memoryview)
    ]
    if not slices or sum(records.size for _, records in slices) > SMALL_BYTES:
        return
    for partition, records in slices:
        try:
            partition.records = records.read()
        except KafkaError as error:
            partition.error_code, partition.records = int(error.code), b""
            if isinstance(partition, ShareFetchResponse.PartitionData):
                # Nobody has got the records: the locks end by themselves.
                partition.error_message, partition.acquired_records = error.message, []


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
