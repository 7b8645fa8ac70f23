"""Requests that are the controller's to answer. Control plane.

A broker hands them to the active controller with the client's principal and deadline. With one node the controller is a call
away; with several it will be an Envelope away (KIP-590), behind the same `Controller` seam.

Source: Kafka's `ForwardingManager`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.api.throttling import mutation_quota

__all__ = ["forward"]


def forward(context: RequestContext, request: Any) -> asyncio.Future[Any]:
    """Hand a request to the controller; its `timeout_ms`, where it has one, becomes the deadline."""
    services = context.services
    timeout_ms = getattr(request, "timeout_ms", None)
    return services.controller.handle(
        context.api_key,
        context.version,
        request,
        principal=context.connection.principal,
        deadline_ms=None if timeout_ms is None else services.now_ms() + timeout_ms,
        mutation_quota=mutation_quota(context),
    )
