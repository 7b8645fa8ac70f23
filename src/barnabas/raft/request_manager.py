"""At most one request is under way to each peer; after a failed request comes a pause.

Source: Kafka's `RequestManager` (`controller.quorum.request.timeout.ms`, `controller.quorum.retry.backoff.ms`).
"""

from __future__ import annotations

from barnabas.raft.peer_messages import Request

ANYONE = -1
"""The peer of a node that knows no leader: it asks one after the other."""


class RequestManager:
    """Args: `backoff_ms` after a failure, `timeout_ms` after which a request without an answer counts as failed."""

    def __init__(self, backoff_ms: int, timeout_ms: int) -> None:
        self._backoff_ms = backoff_ms
        self._timeout_ms = timeout_ms
        self._under_way: dict[int, Request] = {}
        self._ready_at: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<RequestManager under_way={sorted(self._under_way)} waits={sorted(self._ready_at)}>"

    def ready_at(self, peer: int, now_ms: int) -> int:
        """Return when the next request to this peer may be sent."""
        return max(self._ready_at.get(peer, now_ms), now_ms)

    def sent(self, peer: int, request: Request, now_ms: int) -> None:
        self._under_way[peer] = request
        self._ready_at[peer] = now_ms + self._timeout_ms

    def ended(self, request: Request, now_ms: int, *, is_ok: bool) -> bool:
        """Note an answer or a failure; returns False for a request that was given up."""
        for peer, under_way in self._under_way.items():
            if under_way is request:
                del self._under_way[peer]
                self._ready_at[peer] = now_ms if is_ok else now_ms + self._backoff_ms
                return True
        return False

    def reset(self) -> None:
        """Give up every request: they mean nothing in another role or epoch."""
        self._under_way.clear()
        self._ready_at.clear()
