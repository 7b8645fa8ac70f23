"""A rate over a sliding window of samples, and the throttle time until it is within a bound.

    |  sample  |  sample  |  sample  | current |          each `window_ms` long or longer; `samples` of them count
    0          1          2          3         now

- A sample begins with the first value after the previous sample is complete; there may be gaps between samples.
- A sample whose last value is older than samples * window is cleared.
- The rate is the sum divided by the time since the oldest sample began, but at least by samples - 1 whole windows and the elapsed part
  of the current one. A new client is therefore not throttled for its first request.
- The throttle time X brings the rate O over the window W down to the bound T: O * W / (W + X) = T.

The numbers are Kafka's to the millisecond, including the quirk that a cleared sample begins *now*.

`SimpleRate`, of replication, divides by the time since the oldest sample alone, but by one window at least.

Sources: Kafka's `SampledStat`, `Rate`, `SimpleRate`, `WindowedSum`, `QuotaUtils.throttleTime`.
"""

from __future__ import annotations

import math

__all__ = ["Rate", "SimpleRate", "java_int", "java_round"]

INT_MAX = 2**31 - 1


def java_round(value: float) -> int:
    """Round as Java's `Math.round`: a half up, NaN to 0; capped to an int, as throttle times are."""
    if value != value:
        return 0
    return INT_MAX if value >= INT_MAX else math.floor(value + 0.5)


def java_int(value: float) -> int:
    """Cast a non-negative value as Java casts to an int: NaN to 0, a value that is too large to the largest int."""
    if value != value:
        return 0
    return INT_MAX if value >= INT_MAX else int(value)


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """Values per second.

    Args:
        samples: the number of windows (quota.window.num).
        window_ms: the length of a window (quota.window.size.seconds).

    Attributes:
        last_ms: the time of the last value.
    """

    __slots__ = ("_current", "_samples", "_samples_max", "_window_ms", "last_ms")

    def __init__(self, samples: int, window_ms: int, now_ms: int) -> None:
        self._samples: list[_Sample] = [_Sample(now_ms)]
        self._current = 0
        self._samples_max = samples
        self._window_ms = window_ms
        self.last_ms = now_ms

    def __repr__(self) -> str:
        return f"<Rate {sum(sample.value for sample in self._samples)} in {len(self._samples)} samples>"

    def record(self, value: float, now_ms: int) -> None:
        """Count a value; a negative value takes back one that was counted at the same time."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = self.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One extra sample overlaps the far end of the window.
        self._current = (self._current + 1) % (self._samples_max + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current] = _Sample(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """Return the values per second as of now."""
        window_ms = self._window(now_ms)
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def _window(self, now_ms: int) -> int:
        """Clear samples that are too old and return the time that the rest counts for, in milliseconds."""
        elapsed_ms = self._elapsed_ms(now_ms)
        missing = self._samples_max - 1 - elapsed_ms // self._window_ms
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)

    def _elapsed_ms(self, now_ms: int) -> int:
        """Clear samples that are too old and return the time since the oldest of the others began."""
        expire_ms = self._samples_max * self._window_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expire_ms:
                sample.start_ms = sample.last_ms = now_ms
                sample.value = 0.0
            elif sample.start_ms < oldest_ms:
                oldest_ms = sample.start_ms
        return now_ms - oldest_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return how long until the rate is within the bound if nothing more is recorded; 0 if it is now."""
        rate = self.measure(now_ms)
        if rate <= bound:
            return 0
        return java_round((rate - bound) / bound * self._window(now_ms))


class SimpleRate(Rate):
    """A rate without the lenience for new clients."""

    __slots__ = ()

    def _window(self, now_ms: int) -> int:
        return max(self._elapsed_ms(now_ms), self._window_ms)
