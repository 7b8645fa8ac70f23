"""One client quota: its limits by entity, and the usage of the clients that share each limit.

    limits by entity ──► the most specific that fits the client ──► sensor of the clients that share the limit ──► milliseconds

`client_quotas` explains the order of entities, defaults, and which clients share a sensor.

Sources: Kafka's `ClientQuotaManager`, `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`; KIP-13, KIP-55, KIP-124,
KIP-599.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from barnabas.metadata.client_quotas_image import QuotaEntity
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quota.rate import INT_MAX, Rate, java_int
from barnabas.quota.token_bucket import TokenBucket

__all__ = ["MutationQuota", "MutationQuotaManager", "QuotaManager"]

EXPIRE_MS = 3_600_000
"""Silence after which a sensor is dropped."""

RESOLVED_MAX = 10_000
"""Clients whose sensor is cached; the cache is cleared when it is full, so that invented client ids cannot fill the memory."""

USER, CLIENT_ID = "user", "client-id"


Meter = TypeVar("Meter", bound=Rate | TokenBucket)


class _Sensor(Generic[Meter]):
    """The usage of the clients that share one limit.

    Attributes:
        throttled_ms: the sum of their throttle times.
        throttles: how often they were throttled.
    """

    __slots__ = ("limit", "meter", "throttled_ms", "throttles")

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.limit = 0.0
        self.throttled_ms = 0
        self.throttles = 0


# The clients that share a sensor: (user, client id), an empty string for any.
_Tags = tuple[str, str]


class _Manager(Generic[Meter]):
    """One quota's limits and sensors."""

    def __init__(self, make_meter: Callable[[int], Meter]) -> None:
        self._make_meter = make_meter
        self._limits: dict[QuotaEntity, float] = {}
        self._sensors: dict[_Tags, _Sensor[Meter]] = {}
        self._resolved: dict[tuple[str, str | None], _Sensor[Meter] | None] = {}
        self.is_enabled = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._limits)} limits, {len(self._sensors)} sensors>"

    @property
    def sensors(self) -> Mapping[_Tags, _Sensor[Meter]]:
        """The sensors by user and client id; an empty string stands for any."""
        return self._sensors

    def update(self, entity: QuotaEntity, limit: float | None) -> None:
        """Set an entity's limit; None removes it."""
        if limit is None:
            self._limits.pop(entity, None)
        else:
            self._limits[entity] = limit
        self.is_enabled = bool(self._limits)
        self._resolved.clear()
        if not self._limits:
            self._sensors.clear()

    def limit(self, user: str, client_id: str | None) -> float | None:
        """Return the limit of a client; None if it has none."""
        found = self._find(user, client_id)
        return None if found is None else found[1]

    def _find(self, user: str, client_id: str | None) -> tuple[_Tags, float] | None:
        client = client_id or ""
        both, by_user, by_client = (user, client), (user, ""), ("", client)
        candidates: tuple[tuple[QuotaEntity, _Tags], ...] = (
            (((CLIENT_ID, client), (USER, user)), both),
            (((CLIENT_ID, None), (USER, user)), both),
            (((USER, user),), by_user),
            (((CLIENT_ID, client), (USER, None)), both),
            (((CLIENT_ID, None), (USER, None)), both),
            (((USER, None),), by_user),
            (((CLIENT_ID, client),), by_client),
            (((CLIENT_ID, None),), by_client),
        )
        for entity, tags in candidates:
            limit = self._limits.get(entity)
            if limit is not None and (client or tags is by_user):
                return tags, limit
        return None

    def sensor(self, user: str, client_id: str | None, now_ms: int) -> _Sensor[Meter] | None:
        """Return the sensor of a client; None if it has no limit."""
        key = (user, client_id)
        try:
            return self._resolved[key]
        except KeyError:
            pass
        found = self._find(user, client_id)
        sensor = None
        if found is not None:
            tags, limit = found
            sensor = self._sensors.get(tags)
            if sensor is None:
                sensor = self._sensors[tags] = _Sensor(self._make_meter(now_ms))
            sensor.limit = limit
        if len(self._resolved) >= RESOLVED_MAX:
            self._resolved.clear()
        self._resolved[key] = sensor
        return sensor

    def expire(self, now_ms: int) -> None:
        """Drop sensors that were silent for an hour."""
        old = [tags for tags, sensor in self._sensors.items() if now_ms - sensor.meter.last_ms > EXPIRE_MS]
        for tags in old:
            del self._sensors[tags]
        if old:
            self._resolved.clear()


class QuotaManager(_Manager[Rate]):
    """A quota on a rate.

    Args:
        max_throttle_ms: the longest throttle time; None without a bound.
    """

    def __init__(self, samples: int, window_seconds: int, max_throttle_ms: int | None = None) -> None:
        super().__init__(lambda now_ms: Rate(samples, window_seconds * 1000, now_ms))
        self._whole_windows_seconds = (samples - 1) * window_seconds
        self._max_throttle_ms = max_throttle_ms

    def record_and_throttle(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Count a client's usage and return its throttle time in milliseconds."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is None:
            return 0
        sensor.meter.record(value, now_ms)
        throttle_ms = sensor.meter.throttle_ms(sensor.limit, now_ms)
        return throttle_ms if self._max_throttle_ms is None else min(throttle_ms, self._max_throttle_ms)

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Count a client's usage; a negative value takes back usage that was counted too early."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.meter.record(value, now_ms)

    def max_value_in_window(self, user: str, client_id: str | None) -> int:
        """Return the largest single usage that may stay within the limit."""
        limit = self.limit(user, client_id)
        return INT_MAX if limit is None else java_int(limit * self._whole_windows_seconds)

    def throttled(self, user: str, client_id: str | None, throttle_ms: int, now_ms: int) -> None:
        """Count that a client was throttled."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.throttled_ms += throttle_ms
            sensor.throttles += 1


class MutationQuota:
    """The controller mutation quota for one request.

    Args:
        is_strict: whether to reject the request if the bucket is below zero.
    """

    __slots__ = ("_now_ms", "_recorded_ms", "_sensor", "_throttle_ms", "is_strict")

    def __init__(self, sensor: _Sensor[TokenBucket], now_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._sensor = sensor
        self._now_ms = now_ms
        self._throttle_ms = 0
        self._recorded_ms = 0
        self.is_strict = is_strict

    def record(self, permits: int) -> None:
        """Count partitions to be created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, the quota is strict and exhausted; nothing is counted.
        """
        now_ms, bucket, limit = self._now_ms(), self._sensor.meter, self._sensor.limit
        if self.is_strict and (throttle_ms := bucket.throttle_ms(limit, now_ms)):
            self._throttle_ms, self._recorded_ms = throttle_ms, now_ms
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        bucket.spend(permits, limit, now_ms)
        if not self.is_strict and (throttle_ms := bucket.throttle_ms(limit, now_ms)):
            self._throttle_ms, self._recorded_ms = throttle_ms, now_ms

    def throttle_ms(self) -> int:
        """Return the throttle time from now on, in milliseconds; it shrinks while the response is made."""
        return max(0, self._throttle_ms - (self._now_ms() - self._recorded_ms)) if self._throttle_ms else 0


class MutationQuotaManager(_Manager[TokenBucket]):
    """The quota on partitions created and deleted."""

    def __init__(self, samples: int, window_seconds: int, now_ms: Callable[[], int]) -> None:
        super().__init__(lambda _: TokenBucket(samples, window_seconds * 1000))
        self._now_ms = now_ms

    def quota_for(self, user: str, client_id: str | None, *, is_strict: bool) -> MutationQuota | None:
        """Return the quota for one request of a client; None if the client has no limit."""
        sensor = self.sensor(user, client_id, self._now_ms()) if self.is_enabled else None
        return None if sensor is None else MutationQuota(sensor, self._now_ms, is_strict=is_strict)
