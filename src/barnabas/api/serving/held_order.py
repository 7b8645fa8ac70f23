"""A Produce request that waits before it has appended everything.

Its connection reads the next request into the same buffer, or gives the buffer to another connection, so the records are copied out of
it. No later request of the connection is handled before this one has appended everything, so the client's records stay in order.

Only Produce needs this: no other request has a field that is a view of the buffer. Source: Kafka's `SocketServer`, which mutes a
connection while one of its requests is handled.
"""

from __future__ import annotations

from typing import Any

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.messages import ProduceRequest
from barnabas.turns import next_turn, spend

__all__ = ["hold_order", "pace_holding", "release_order"]


def hold_order(context: RequestContext, request: ProduceRequest) -> None:
    """Keep a Produce request's records and its place; call it before the first wait. A request that is held already stays as it is."""
    if context.holds_order:
        return
    context.holds_order = True
    for data in request.topic_data:
        for wanted in data.partition_data:
            records: Any = wanted.records
            if records is not None:
                wanted.records = memoryview(bytearray(records))


async def pace_holding(context: RequestContext, request: ProduceRequest, cost: int) -> None:
    """As `turns.pace`: give the loop its turn, with the order held, before something of a cost is done."""
    if spend(cost):
        hold_order(context, request)
        await next_turn()
        spend(cost)


def release_order(context: RequestContext) -> None:
    """Let the connection handle its next requests: everything of this one is appended."""
    if context.holds_order:
        context.holds_order = False
        if context.when_released is not None:
            context.when_released()
