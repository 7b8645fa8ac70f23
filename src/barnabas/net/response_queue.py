"""The order of one connection's requests and responses.

Responses leave in the order of their requests. The queue holds a response from when its request is handled until its turn; while
it is empty, a response that is ready need not enter it.

    last in the queue                  the next request is handled if it is
    nothing                            any
    a Produce                          a Produce, while fewer than `PIPELINE_LIMIT` responses wait
    a Produce that holds the order     none
    any other request                  none

Produce requests are thus appended in order while earlier ones wait for the high watermark. A Produce holds the order while it
waits for the transaction coordinator before it appends.

Source: Kafka mutes a connection while one request is under way (`SocketServer.Processor`); pipelining Produce is ours.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.dispatch import Output

__all__ = ["PIPELINE_LIMIT", "ResponseQueue"]

PIPELINE_LIMIT = 256
"""Produce requests of one connection that may wait for the high watermark at once."""

_PRODUCE = 0

Result = Output | asyncio.Future[Any] | None
"""A response's bytes, a future of its response, or None if the client wants no response."""


class ResponseQueue:
    """The responses of one connection that have not left yet.

    Attributes:
        waiting: each with the context of its request, in order.
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: deque[tuple[AnyContext, Result]] = deque()

    def __repr__(self) -> str:
        return f"<ResponseQueue waiting={len(self.waiting)}>"

    @property
    def holds_order(self) -> bool:
        """Whether no request at all is handled before the last one's response has left."""
        return bool(self.waiting) and self.waiting[-1][0].holds_order

    def admits(self, frame: memoryview) -> bool:
        """Return whether a request may be handled now."""
        waiting = self.waiting
        if not waiting:
            return True
        last = waiting[-1][0]
        if last.api_key != _PRODUCE or last.holds_order or len(waiting) >= PIPELINE_LIMIT:
            return False
        return len(frame) >= 2 and frame[0] == 0 and frame[1] == _PRODUCE

    def add(self, context: AnyContext, result: Result) -> None:
        """Add the response of the request that was handled last."""
        self.waiting.append((context, result))

    def take(self) -> tuple[AnyContext, Result] | None:
        """Take the first response if it is ready; a future that is taken is done."""
        if self.waiting:
            result = self.waiting[0][1]
            if not isinstance(result, asyncio.Future) or result.done():
                return self.waiting.popleft()
        return None

    def cancel(self) -> None:
        """Cancel the waiting requests and drop their responses; errors among them are not reported."""
        for _, result in self.waiting:
            if isinstance(result, asyncio.Future):
                result.cancel()
        self.waiting.clear()
