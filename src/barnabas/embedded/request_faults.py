"""Faults in the answers to clients: a request is answered with an error, or is carried out and never answered.

    Dispatcher ──► Route of the API ──► [ this handler, while a fault is ordered ] ──► the API's own handler

An API without a fault has its ordinary route, so the faults cost it nothing.

- An error is the response that Kafka gives to a request that fails as a whole: the code at the top, or on each topic, partition or group
  of the request (`api.serving.error_response`). Nothing of the request is carried out.
- For a dropped response the request is carried out, and waits as it would (for the replicas with acks=all). If it succeeds, the node
  closes the connection instead of the response. A request that fails, or wants no response, is answered as usual and does not count.
- Requests of other brokers meet no fault and do not count: their client ids begin with `broker-N-`, and a follower's Fetch has its
  replica id.
- A slow node handles each client's request after a delay, and keeps the requests in order.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.api import APIS
from barnabas.api.serving.context import AnyContext, RequestContext
from barnabas.api.serving.dispatch import Dispatcher, Handle
from barnabas.api.serving.held_order import hold_order
from barnabas.embedded.fault_tickets import Tickets
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import ProduceRequest
from barnabas.steps import sleep

__all__ = ["OrderedFault", "RequestFaults"]

_OF_A_BROKER = re.compile(r"broker-\d+-")


class OrderedFault(NamedTuple):
    """A fault for the next requests of an API, and the count of them.

    Attributes:
        error_code: as in `fault_plan.RequestFault`.
    """

    api_key: int
    error_code: int | None
    tickets: Tickets


class RequestFaults:
    """The faults of one node's listeners for clients.

    Args:
        dispatcher: of these listeners.
        loop: waits for a slow node.
    """

    def __init__(self, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop) -> None:
        self._dispatcher = dispatcher
        self._loop = loop
        self._own: dict[int, Handle] = {}

    def __repr__(self) -> str:
        return f"<RequestFaults apis={sorted(self._own)}>"

    def apply(self, faults: Iterable[OrderedFault], slow_s: float = 0.0) -> None:
        """Let these faults happen, and no others.

        Args:
            slow_s: how long each client's request waits before it is handled.
        """
        for key, handle in self._own.items():
            self._dispatcher.route(key).handle = handle
        self._own.clear()
        ordered: defaultdict[int, list[OrderedFault]] = defaultdict(list)
        for fault in faults:
            ordered[fault.api_key].append(fault)
        for key in APIS if slow_s else ordered:
            route = self._dispatcher.route(key)
            self._own[key] = handle = route.handle
            if key in ordered:
                handle = _with_faults(handle, ordered[key])
            route.handle = self._slowed(handle, slow_s) if slow_s else handle

    def _slowed(self, handle: Handle, slow_s: float) -> Handle:
        async def handle_later(context: AnyContext, request: Any) -> Any:
            if _is_a_clients(context.client_id):
                if isinstance(context, RequestContext) and isinstance(request, ProduceRequest):
                    hold_order(context, request)
                await sleep(slow_s, self._loop)
            return await handle(context, request)

        return handle_later


def _with_faults(handle: Handle, ordered: Sequence[OrderedFault]) -> Handle:
    async def handle_with_faults(context: AnyContext, request: Any) -> Any:
        if not _is_of_a_broker(context, request):
            for each in ordered:
                code = each.error_code
                if code is None and not each.tickets.is_used_up:
                    return await _dropped(context, handle(context, request), each.tickets)
                if code is not None and each.tickets.take():
                    raise KafkaError(code)
        return await handle(context, request)

    return handle_with_faults


async def _dropped(context: AnyContext, handled: Awaitable[Any], tickets: Tickets) -> Any:
    """Close the connection instead of the response, if the request has succeeded."""
    response = await handled
    if response is None or _has_failed(response) or not tickets.take():
        return response
    context.close_connection = True
    return None


def _is_a_clients(client_id: str | None) -> bool:
    return _OF_A_BROKER.match(client_id or "") is None


def _is_of_a_broker(context: AnyContext, request: Any) -> bool:
    if not _is_a_clients(context.client_id):
        return True
    state = getattr(request, "replica_state", None)
    return getattr(request, "replica_id", -1) >= 0 or (state is not None and state.replica_id >= 0)


def _has_failed(message: Struct) -> bool:
    """Return whether a response has an error code anywhere."""
    if getattr(message, "error_code", 0):
        return True
    nested = (getattr(message, name) for name in message.NESTED)
    return any(
        isinstance(each, Struct) and _has_failed(each)
        for value in nested
        for each in (value if isinstance(value, list) else (value,))
    )
