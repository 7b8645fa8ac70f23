"""How a follower reaches one leader.

`RemoteLeaderEndPoint` sends through a connection of its own: a Fetch may wait, and a broker answers the requests of a connection in their
order.

Source: Kafka's `LeaderEndPoint`, `RemoteLeaderEndPoint`, `BlockingSend`.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.protocol.message import Message
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse

__all__ = ["Connection", "LeaderEndPoint", "RemoteLeaderEndPoint"]

NEWEST_FETCH_VERSION = 18


class LeaderEndPoint(Protocol):
    """One leader, for `replica_fetcher_loop`. Both methods raise KafkaError if there is no answer."""

    async def fetch(self, request: FetchRequest) -> FetchResponse: ...

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse: ...


class Connection(Protocol):
    """A `client.channel.Channel`."""

    async def request(
        self, message: Message, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any: ...


class RemoteLeaderEndPoint:
    """A leader at the other end of a connection.

    Args:
        timeout_ms: replica.socket.timeout.ms, in addition to the time that a Fetch may wait.
    """

    def __init__(self, connection: Connection, timeout_ms: int = 30_000) -> None:
        self._connection = connection
        self._timeout_ms = timeout_ms

    def __repr__(self) -> str:
        return f"<RemoteLeaderEndPoint {self._connection!r}>"

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Send a Fetch request and return its response."""
        timeout_ms = self._timeout_ms + request.max_wait_ms
        response: FetchResponse = await self._connection.request(
            request, highest=NEWEST_FETCH_VERSION, timeout_ms=timeout_ms
        )
        return response

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Send a ListOffsets request and return its response."""
        response: ListOffsetsResponse = await self._connection.request(request, timeout_ms=self._timeout_ms)
        return response
