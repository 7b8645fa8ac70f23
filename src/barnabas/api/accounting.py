"""The costs of one request; `throttling` charges it to the client's quotas, and metrics show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.quota.quota_manager import MutationQuota

__all__ = ["Accounting"]


class Accounting:
    """One request's costs.

    Attributes:
        started_ns: when its handling began.
        request_bytes: header and body.
        busy_ns: how long it occupied the loop, up to its response.
        throttle_ms: the client's pause from now on.
        mutation: the quota of a request that creates or deletes partitions; the controller charges it.
        is_settled: the handler has charged the request.
    """

    __slots__ = ("busy_ns", "is_settled", "mutation", "request_bytes", "started_ns", "throttle_ms")

    def __init__(self, started_ns: int, request_bytes: int) -> None:
        self.started_ns = started_ns
        self.request_bytes = request_bytes
        self.busy_ns = 0
        self.throttle_ms = 0
        self.mutation: MutationQuota | None = None
        self.is_settled = False
