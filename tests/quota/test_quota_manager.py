"""One quota: its sensors and its cache, and the mutation quota; in virtual time."""

from __future__ import annotations

import pytest

from barnabas.metadata.client_quotas_image import quota_entity
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quota import quota_manager
from barnabas.quota.client_quotas import ClientQuotas, QuotaWindows
from barnabas.quota.quota_manager import QuotaManager
from tests.quota.test_client_quotas import EPOCH_MS, Clock, entity

DEFAULT_CLIENT = quota_entity([("client-id", None)])


def limited(limit: float, max_throttle_ms: int | None = None) -> QuotaManager:
    manager = QuotaManager(11, 1, max_throttle_ms)
    manager.update(DEFAULT_CLIENT, limit)
    return manager


def test_the_throttle_time_has_a_bound() -> None:
    assert limited(10).record_and_throttle("u", "c", 1000, EPOCH_MS) == 90_000
    assert limited(10, 1000).record_and_throttle("u", "c", 1000, EPOCH_MS) == 1000


def test_usage_that_was_counted_too_early_is_taken_back() -> None:
    manager = limited(10)
    manager.record("u", "c", 1000, EPOCH_MS)
    manager.record("u", "c", -1000, EPOCH_MS)
    assert manager.record_and_throttle("u", "c", 100, EPOCH_MS) == 0


def test_throttles_are_counted_for_those_who_have_a_limit() -> None:
    manager = limited(10)
    for client_id in ("c", "c", None):
        manager.throttled("u", client_id, 70, EPOCH_MS)
    ((tags, sensor),) = manager.sensors.items()
    assert (tags, sensor.throttled_ms, sensor.throttles) == (("", "c"), 140, 2)


def test_without_a_limit_nothing_is_measured() -> None:
    manager = QuotaManager(11, 1)
    assert not manager.is_enabled
    assert manager.record_and_throttle("u", "c", 1e9, EPOCH_MS) == 0
    assert not manager.sensors
    manager.update(DEFAULT_CLIENT, 1)
    manager.record("u", "c", 5, EPOCH_MS)
    manager.update(DEFAULT_CLIENT, None)
    assert not manager.is_enabled
    assert not manager.sensors


def test_a_full_cache_forgets_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_manager, "RESOLVED_MAX", 2)
    manager = limited(10)
    manager.record("u", "c", 1000, EPOCH_MS)
    for number in range(5):
        manager.record("u", f"other-{number}", 1, EPOCH_MS)
    assert len(manager._resolved) <= 2
    assert manager.record_and_throttle("u", "c", 0, EPOCH_MS) == 90_000


def mutation(clock: Clock) -> ClientQuotas:
    quotas = ClientQuotas(QuotaWindows(controller_samples=11), clock)
    quotas.apply({entity("user_a"): {"controller_mutation_rate": 10.0}})
    return quotas


def test_a_strict_mutation_quota_refuses_once_the_bucket_is_below_zero() -> None:
    clock = Clock()
    quotas = mutation(clock)
    quota = quotas.controller_mutation.quota_for("a", "b", is_strict=True)
    assert quota is not None
    quota.record(110)  # the whole burst
    quota.record(50)  # nothing is left, but nothing is owed: accepted, and owed from now on
    assert quota.throttle_ms() == 0
    with pytest.raises(KafkaError) as raised:
        quota.record(1)
    assert raised.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert quota.throttle_ms() == 5000
    clock.now_ms += 2000
    assert quota.throttle_ms() == 3000
    clock.now_ms += 3000
    later = quotas.controller_mutation.quota_for("a", "c", is_strict=True)
    assert later is not None
    later.record(1)


def test_a_permissive_mutation_quota_accepts_and_throttles() -> None:
    clock = Clock()
    quota = mutation(clock).controller_mutation.quota_for("a", "b", is_strict=False)
    assert quota is not None
    quota.record(160)
    assert quota.throttle_ms() == 5000


def test_no_mutation_quota_for_others() -> None:
    assert mutation(Clock()).controller_mutation.quota_for("z", "b", is_strict=True) is None
