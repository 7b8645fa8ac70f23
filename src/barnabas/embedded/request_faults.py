"""Faults in the answers to clients, and a log of their requests.

    Dispatcher ──► Route of the API ──► [ RequestFaults ] ──► the API's own handler

Only a broker that tests have started has this in its routes.

- An error is the response that Kafka gives to a request that fails as a whole: the code at the top, or on each topic, partition or group
  of the request (`api.serving.error_response`). Nothing of the request is carried out.
- For a dropped response the request is carried out, and waits as it would (for the replicas with acks=all). If it succeeds, the node
  closes the connection instead of the response. A request that fails, or wants no response, is answered as usual and does not count.
- A delayed request keeps its place: the requests of its connection stay in order. A delayed response holds the later ones of its
  connection back, as TCP would.
- A duplicated response is the same bytes twice, with the same correlation id.
- A request meets the faults in the order in which they were ordered: any delays of requests, and one other.
- Requests of other brokers meet no fault and do not count: their client ids begin with `broker-N-`, and a follower's Fetch has its
  replica id.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.api.serving.context import AnyContext, RequestContext
from barnabas.api.serving.dispatch import Dispatcher, Handle, Output, Route
from barnabas.api.serving.held_order import hold_order
from barnabas.embedded.fault_plan import EVERY_API, FaultKind, RequestFault
from barnabas.embedded.fault_tickets import Tickets
from barnabas.embedded.request_log import PARTITIONS_MAX, RequestLog
from barnabas.embedded.request_subject import subject_of
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.message import UNLIMITED, Message, Struct
from barnabas.protocol.messages import ProduceRequest
from barnabas.steps import sleep

__all__ = ["OrderedFault", "RequestFaults"]

_OF_A_BROKER = re.compile(r"broker-\d+-")


class OrderedFault(NamedTuple):
    """A fault for clients' requests, and the count of them."""

    fault: RequestFault
    tickets: Tickets


class RequestFaults:
    """The faults of one node's listeners for clients.

    Args:
        dispatcher: of these listeners.
        loop: waits for delays.
        log: notes the requests.
    """

    def __init__(self, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop, log: RequestLog) -> None:
        self._loop = loop
        self.log = log
        self._of_every_api: Sequence[OrderedFault] = ()
        self._by_api: dict[int, Sequence[OrderedFault]] = {}
        self._twice: dict[int, AnyContext] = {}
        self._encode = dispatcher.encode
        dispatcher.encode = self._encoded  # type: ignore[method-assign]
        dispatcher.around(self._put_around)

    def __repr__(self) -> str:
        return f"<RequestFaults apis={sorted(self._by_api)} every={len(self._of_every_api)}>"

    def apply(self, faults: Iterable[OrderedFault]) -> None:
        """Let these faults happen, and no others."""
        ordered = list(faults)
        keys = {each.fault.api_key for each in ordered} - {EVERY_API}
        self._of_every_api = [each for each in ordered if each.fault.api_key == EVERY_API]
        self._by_api = {
            key: [each for each in ordered if each.fault.api_key in (key, EVERY_API)] for key in sorted(keys)
        }

    def _put_around(self, route: Route) -> None:
        handle = route.handle

        async def handle_with_faults(context: AnyContext, request: Any) -> Any:
            if _is_of_a_broker(context, request):
                return await handle(context, request)
            return await self._handled(handle, context, request)

        route.handle = handle_with_faults

    async def _handled(self, handle: Handle, context: AnyContext, request: Any) -> Message | None:
        faults = self._by_api.get(context.api_key, self._of_every_api)
        # A fault of a topic must see every partition of the request.
        is_whole = any(each.fault.where.topic is not None or each.fault.where.partition is not None for each in faults)
        subject = subject_of(context, request, UNLIMITED if is_whole else PARTITIONS_MAX)
        met = self.log.add(context.api_key, context.version, context.client_id, subject, context.services.now_ms())
        for each in faults:
            fault = each.fault
            if not subject.meets(fault.where, context.client_id):
                continue
            if fault.kind is FaultKind.DROP_RESPONSE:
                if each.tickets.is_used_up:
                    continue
                return _dropped(context, await handle(context, request), each, met)
            if not each.tickets.take():
                continue
            met.append(fault.number)
            if fault.kind is FaultKind.DELAY_REQUEST:
                _hold(context, request)
                await sleep(fault.seconds, self._loop)
            elif fault.kind is FaultKind.FAIL:
                raise KafkaError(fault.error_code)
            elif fault.kind is FaultKind.DROP_CONNECTION:
                context.close_connection = True
                return None
            elif fault.kind is FaultKind.DELAY_RESPONSE:
                _hold(context, request)
                response = await handle(context, request)
                await sleep(fault.seconds, self._loop)
                return response
            else:
                response = await handle(context, request)
                if response is not None:
                    self._twice[id(context)] = context
                return response
        return await handle(context, request)

    def _encoded(self, context: AnyContext, response: Message) -> Output:
        output = self._encode(context, response)
        if self._twice.pop(id(context), None) is None:
            return output
        whole = bytearray().join(part if isinstance(part, bytearray) else part.read() for part in output)
        return [whole + whole]


def _hold(context: AnyContext, request: Any) -> None:
    """Copy the records of a Produce, which are views of the connection's buffer, before the request waits."""
    if isinstance(context, RequestContext) and isinstance(request, ProduceRequest):
        hold_order(context, request)


def _dropped(context: AnyContext, response: Message | None, ordered: OrderedFault, met: list[int]) -> Message | None:
    """Close the connection instead of the response, if the request has succeeded."""
    if response is None or _has_failed(response) or not ordered.tickets.take():
        return response
    met.append(ordered.fault.number)
    context.close_connection = True
    return None


def _is_of_a_broker(context: AnyContext, request: Any) -> bool:
    if _OF_A_BROKER.match(context.client_id or ""):
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
