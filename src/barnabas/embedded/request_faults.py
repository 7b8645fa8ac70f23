"""Faults in the answers to clients: a request is answered with an error, or is carried out and never answered.

    Dispatcher ──► Route of the API ──► [ this handler, while a fault is ordered ] ──► the API's own handler

An API without a fault has its ordinary route, so the faults cost it nothing.

- An error is the response that Kafka gives to a request that fails as a whole: the code at the top, or on each topic, partition or group
  of the request (`api.error_response`). Nothing of the request is carried out.
- For a dropped response the request is carried out, and waits as it would (for the replicas with acks=all). If it succeeds, the node
  closes the connection instead of the response. A request that fails, or wants no response, is answered as usual and does not count.
- Requests of other brokers meet no fault and do not count: their client ids begin with `broker-N-`, and a follower's Fetch has its
  replica id.
- A slow node handles each client's request after a delay, and keeps the requests in order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.api.context import AnyContext
from barnabas.api.dispatch import Dispatcher
from barnabas.embedded.fault_tickets import Tickets
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.message import Struct

__all__ = ["OrderedFault", "RequestFaults"]

_OF_A_BROKER = re.compile(r"broker-\d+-")


class OrderedFault(NamedTuple):
    """What happens to the next requests of an API, and the count of them.

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
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._ordered: dict[int, list[OrderedFault]] = {}

    def __repr__(self) -> str:
        return f"<RequestFaults apis={sorted(self._ordered)}>"

    def apply(self, faults: Iterable[OrderedFault], slow_s: float = 0.0) -> None:
        """Let these faults happen, and no others.

        Args:
            slow_s: how long each client's request waits before it is handled.
        """
        self._dispatcher.slow_down(slow_s, _is_a_clients)
        ordered: defaultdict[int, list[OrderedFault]] = defaultdict(list)
        for fault in faults:
            ordered[fault.api_key].append(fault)
        for key in self._ordered.keys() - ordered.keys():
            self._dispatcher.intercept(key, None)
        for key, wanted in ordered.items():
            self._dispatcher.intercept(key, self._handler(key, wanted))
        self._ordered = dict(ordered)

    def _handler(self, key: int, ordered: Sequence[OrderedFault]) -> Callable[[AnyContext, Any], Any]:
        handle = self._dispatcher.own_handler(key)

        def handle_with_faults(context: AnyContext, request: Any) -> Any:
            if not _is_of_a_broker(context, request):
                for each in ordered:
                    code = each.error_code
                    if code is None and not each.tickets.is_used_up:
                        return _dropped(context, handle(context, request), each.tickets)
                    if code is not None and each.tickets.take():
                        raise KafkaError(code)
            return handle(context, request)

        return handle_with_faults


async def _dropped(context: AnyContext, handled: Any, tickets: Tickets) -> Any:
    """Close the connection instead of the response, if the request has succeeded."""
    response = await handled if isinstance(handled, Awaitable) else handled
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
