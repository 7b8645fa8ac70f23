"""A bucket of tokens that refills at the rate of the quota.

It holds at most its burst, the quota of samples * window seconds. Spending may take it below zero: the quota is then exhausted until
the bucket is refilled to zero, and the client is throttled for that time. A sampled rate would count one large burst in full until its
sample expires; the bucket recovers steadily, which suits rare and large requests such as CreateTopics.

Sources: Kafka's `TokenBucket`, `ControllerMutationQuotaManager.throttleTimeMs`; KIP-599.
"""

from __future__ import annotations

from barnabas.quota.rate import java_round

__all__ = ["TokenBucket"]


class TokenBucket:
    """A bucket of tokens.

    Attributes:
        last_ms: the time of the last refill.
    """

    __slots__ = ("_burst_seconds", "_tokens", "last_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_seconds = samples * window_ms / 1000
        # The first refill fills it to the burst, since time 0 is long ago.
        self._tokens = 0.0
        self.last_ms = 0

    def __repr__(self) -> str:
        return f"<TokenBucket {self._tokens} of {self._burst_seconds} s>"

    def _refill(self, bound: float, now_ms: int) -> None:
        gained = bound * (now_ms - self.last_ms) / 1000
        self._tokens = min(self._burst_seconds * bound, self._tokens + gained)
        self.last_ms = now_ms

    def spend(self, value: float, bound: float, now_ms: int) -> None:
        """Take tokens out, possibly more than there are."""
        self._refill(bound, now_ms)
        self._tokens = min(self._burst_seconds * bound, self._tokens - value)

    def measure(self, bound: float, now_ms: int) -> float:
        """Return the tokens left; the quota is exhausted if they are below zero."""
        self._refill(bound, now_ms)
        return self._tokens

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return how long until the bucket is back at zero; 0 if it is not below."""
        tokens = self.measure(bound, now_ms)
        return 0 if tokens >= 0 else java_round(-tokens / bound * 1000)
