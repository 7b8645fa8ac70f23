"""Forward a request to the active controller.

The controller gets the client's principal and deadline too. On one node it is a call away; in a cluster an Envelope (KIP-590), behind
the same `Controller` protocol. A controller's listener passes what it gets to the controller of its own node, which returns
NOT_CONTROLLER if it is not the active one.

Source: Kafka's `ForwardingManager`.
"""

from __future__ import annotations

from typing import Any

from barnabas.api.serving.context import AnyContext, Client
from barnabas.api.serving.throttling import mutation_quota
from barnabas.protocol.message import Message

__all__ = ["client_of", "forward"]


async def forward(context: AnyContext, request: Message) -> Any:
    """Return the controller's response; the request's `timeout_ms`, if it has one, becomes the deadline."""
    services = context.services
    timeout_ms = getattr(request, "timeout_ms", None)
    return await services.controller.handle(
        context.api_key,
        context.version,
        request,
        principal=context.connection.principal,
        deadline_ms=None if timeout_ms is None else services.now_ms() + timeout_ms,
        mutation_quota=mutation_quota(context),
        is_long=context.is_long,
        client=client_of(context),
    )


def client_of(context: AnyContext) -> Client:
    """Return the client of a request, for the controller."""
    return Client(context.client_id, context.connection.peer_host, context.correlation_id)
