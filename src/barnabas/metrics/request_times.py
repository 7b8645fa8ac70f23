"""Counts of requests by API, version and error, and their durations.

The dispatcher reports each answered request, which costs a few additions. For each API a function is made once that walks only the error
codes of a response.

- Durations are counted in buckets that double from 64 µs. Quantiles cover the last one to two minutes and are interpolated within a
  bucket.
- Each error code of a response counts, NONE included, as in Kafka.

Source: Kafka's `RequestChannelMetrics`, `RequestMetrics`; `AbstractResponse.errorCounts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.dispatch import Output
from barnabas.protocol.api_keys import api
from barnabas.protocol.schema import StructSpec, message_spec

__all__ = ["ApiTimes", "RequestTimes"]

BUCKETS = 24
"""64 µs, 128 µs, … nine minutes; the last bucket holds everything longer."""
_FIRST_NS = 64_000
_GENERATION_NS = 60_000_000_000
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

CountErrors = Callable[[object, "Counter[int]"], None]


def _upper_ns(bucket: int) -> int:
    return _FIRST_NS << bucket


class ApiTimes:
    """The requests of one API.

    Attributes:
        by_version: the number of requests.
        errors: the number of each error code in responses.
        total_ns: the sum of durations.
        request_bytes, response_bytes: sums, headers included.
        throttled_ms: the sum of throttle times.
    """

    def __init__(self, key: int) -> None:
        self.name = api(key).name
        self.by_version: Counter[int] = Counter()
        self.errors: Counter[int] = Counter()
        self.total_ns = 0
        self.max_ns = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.throttled_ms = 0
        self.buckets = [0] * BUCKETS
        self._recent = [0] * BUCKETS
        self._before = [0] * BUCKETS
        self._key = key
        self._error_counters: dict[int, CountErrors] = {}

    def count_errors(self, response: object, version: int) -> None:
        counter = self._error_counters.get(version)
        if counter is None:
            counter = self._error_counters[version] = error_counter(self._key, version)
        counter(response, self.errors)

    def took(self, total_ns: int) -> None:
        bucket = min((total_ns // _FIRST_NS).bit_length(), BUCKETS - 1)
        self.buckets[bucket] += 1
        self._recent[bucket] += 1
        self.total_ns += total_ns
        if total_ns > self.max_ns:
            self.max_ns = total_ns

    def rotate(self) -> None:
        """Begin a new minute and forget the one before the last."""
        self._before, self._recent = self._recent, [0] * BUCKETS

    @property
    def count(self) -> int:
        return sum(self.by_version.values())

    def quantiles(self) -> Iterator[tuple[float, float]]:
        """Yield quantiles with their milliseconds, of the last one to two minutes; nothing without requests."""
        counts = [a + b for a, b in zip(self._recent, self._before, strict=True)]
        total = sum(counts)
        if not total:
            return
        for quantile in QUANTILES:
            wanted, seen = quantile * total, 0
            for bucket, count in enumerate(counts):
                if count and seen + count >= wanted:
                    low = 0 if bucket == 0 else _upper_ns(bucket - 1)
                    share = (wanted - seen) / count
                    yield quantile, min(low + (_upper_ns(bucket) - low) * share, self.max_ns) / 1e6
                    break
                seen += count


class RequestTimes:
    """The requests of one broker; the observer of `api.serving.dispatch`.

    Args:
        now_ns: a monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.by_key: dict[int, ApiTimes] = {}
        self._now_ns = now_ns
        self._rotated_ns = now_ns()

    def __repr__(self) -> str:
        return f"<RequestTimes {sum(times.count for times in self.by_key.values())} requests>"

    def answered(self, context: AnyContext, response: object, output: Output | None, total_ns: int) -> None:
        """Count a request and its response, which is None for a Produce with acks=0."""
        times = self.by_key.get(context.api_key)
        if times is None:
            times = self.by_key[context.api_key] = ApiTimes(context.api_key)
        times.by_version[context.version] += 1
        times.took(total_ns)
        accounting = context.accounting
        if accounting is not None:
            times.request_bytes += accounting.request_bytes
            times.throttled_ms += accounting.throttle_ms
        if output is not None:
            times.count_errors(response, context.version)
            for part in output:
                times.response_bytes += len(part) if isinstance(part, bytearray) else part.size

    def rotate_if_due(self) -> None:
        """Forget minutes that are over; call it before reading quantiles."""
        now_ns = self._now_ns()
        passed = (now_ns - self._rotated_ns) // _GENERATION_NS
        if passed:
            self._rotated_ns = now_ns
            for times in self.by_key.values():
                times.rotate()
                if passed > 1:
                    times.rotate()


def error_counter(key: int, version: int) -> CountErrors:
    """Make a function that counts the error codes of one API's responses in one version."""
    spec = message_spec(f"{api(key).name}Response")
    return _counter_of(spec.root, spec.structs, version)


def _counter_of(struct: StructSpec, structs: Mapping[str, StructSpec], version: int) -> CountErrors:
    fields = [field for field in struct.fields if version in field.versions]
    codes = [field.name for field in fields if field.type == "int16" and field.name.endswith("error_code")]
    inner = [
        (field.name, counter)
        for field in fields
        if field.is_array
        and field.is_struct
        and (counter := _counter_of(structs[field.type], structs, version)) is not _count_nothing
    ]
    if not codes and not inner:
        return _count_nothing

    def count(message: object, errors: Counter[int]) -> None:
        for name in codes:
            errors[int(getattr(message, name))] += 1
        for name, count_inner in inner:
            for element in getattr(message, name) or ():
                count_inner(element, errors)

    return count


def _count_nothing(message: object, errors: Counter[int]) -> None:
    """A response without error codes."""
