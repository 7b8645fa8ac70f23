"""A bucket of tokens that refills at the rate of the quota. Control plane, pure.

It holds at most samples * window seconds' worth, its burst. Spending may take it below zero: the quota is exhausted until it
is refilled to zero, and the time that takes is how long a client must wait. A sampled rate would hold one large burst
against the client until its sample expires; the bucket forgives as time passes, which suits rare and large requests such as
creating topics.

Sources: Kafka's `TokenBucket`, `ControllerMutationQuotaManager.throttleTimeMs`; KIP-599.
"""

from __future__ import annotations

from barnabas.quota.rate import java_round

__all__ = ["TokenBucket"]


class TokenBucket:
    """Attributes: `last_ms`: when it was last touched."""

    __slots__ = ("_burst_seconds", "_tokens", "last_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_seconds = samples * window_ms / 1000
        # Refilled to the burst at the first touch, since the epoch is long ago.
        self._tokens = 0.0
        self.last_ms = 0

    def __repr__(self) -> str:
        return f"<TokenBucket {self._tokens} of {self._burst_seconds} s>"

    def _refill(self, bound: float, now_ms: int) -> None:
        gained = bound * (now_ms - self.last_ms) / 1000
        self._tokens = min(self._burst_seconds * bound, self._tokens + gained)
        self.last_ms = now_ms

    def spend(self, value: float, bound: float, now_ms: int) -> None:
        """Take tokens out, more than there are if need be."""
        self._refill(bound, now_ms)
        self._tokens = min(self._burst_seconds * bound, self._tokens - value)

    def measure(self, bound: float, now_ms: int) -> float:
        """The tokens left; below zero the quota is exhausted."""
        self._refill(bound, now_ms)
        return self._tokens

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long until the bucket is back at zero; 0 when it is not below."""
        tokens = self.measure(bound, now_ms)
        return 0 if tokens >= 0 else java_round(-tokens / bound * 1000)
