"""A rate over a sliding window made of samples, and how long to wait until it is within a bound. Control plane, pure.

    |  sample  |  sample  |  sample  | current |          each `window_ms` long or longer; `samples` of them count
    0          1          2          3         now

- A sample begins with the first value after the one before it was complete; so samples need not touch.
- What lies further back than samples * window counts no more, judged by a sample's last value.
- The rate is the sum divided by the time since the oldest sample began, yet never by less than samples - 1 whole windows
  and the piece of the current one: a client that has just come is not called fast for its first request.
- To bring the rate O over the window W down to the bound T the client rests X, where O * W / (W + X) = T.

The numbers are Kafka's to the millisecond, the quirk included that a sample which lost its values begins anew *now*.

Sources: Kafka's `SampledStat`, `Rate`, `WindowedSum`, `QuotaUtils.throttleTime`.
"""

from __future__ import annotations

import math

__all__ = ["Rate", "java_int", "java_round"]

INT_MAX = 2**31 - 1


def java_round(value: float) -> int:
    """Java's `Math.round`: a half goes up, what is no number is 0; capped to an int as a throttle time is."""
    if value != value:
        return 0
    return INT_MAX if value >= INT_MAX else math.floor(value + 0.5)


def java_int(value: float) -> int:
    """Java's cast to an int, of a value that is not negative: what is no number is 0, what is too large is the largest."""
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
        samples: how many windows count (quota.window.num).
        window_ms: the length of one (quota.window.size.seconds).

    Attributes:
        last_ms: when something was last recorded.
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
        """Count a value; a negative one takes back what was counted at the same time."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = self.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more than count, for the sample that overlaps the window's far end.
        self._current = (self._current + 1) % (self._samples_max + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current] = _Sample(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """Values per second as of now."""
        window_ms = self._window(now_ms)
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def _window(self, now_ms: int) -> int:
        """The time that the sum belongs to; forgets what is too old."""
        expire_ms = self._samples_max * self._window_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expire_ms:
                sample.start_ms = sample.last_ms = now_ms
                sample.value = 0.0
            elif sample.start_ms < oldest_ms:
                oldest_ms = sample.start_ms
        elapsed_ms = now_ms - oldest_ms
        missing = self._samples_max - 1 - elapsed_ms // self._window_ms
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long to rest until the rate is within the bound, if nothing more is recorded; 0 when it is now."""
        rate = self.measure(now_ms)
        if rate <= bound:
            return 0
        return java_round((rate - bound) / bound * self._window(now_ms))
