"""Whose limit it is, and what becomes of it: precedence, sharing, changes, the mutation quota; in virtual time."""

from __future__ import annotations

import pytest

from barnabas.metadata.client_quotas_image import quota_entity
from barnabas.quota.client_quotas import ClientQuotas, QuotaWindows

EPOCH_MS = 1_700_000_000_000
RATE = "producer_byte_rate"


class Clock:
    def __init__(self) -> None:
        self.now_ms = EPOCH_MS

    def __call__(self) -> int:
        return self.now_ms


def make(clock: Clock | None = None, **limits: float) -> ClientQuotas:
    """Limits by entity, written `user_a__client_b` with `default` for a default."""
    quotas = ClientQuotas(QuotaWindows(), clock or Clock())
    for name, limit in limits.items():
        quotas.apply({entity(name): {RATE: limit}})
    return quotas


def entity(name: str) -> tuple[tuple[str, str | None], ...]:
    pairs: list[tuple[str, str | None]] = []
    for part in name.split("__"):
        kind, value = part.split("_")
        kind = "client-id" if kind == "client" else kind
        pairs.append((kind, None if value == "default" else value))
    return quota_entity(pairs)


def test_the_most_specific_entity_decides() -> None:
    order = [
        "user_a__client_b",
        "user_a__client_default",
        "user_a",
        "user_default__client_b",
        "user_default__client_default",
        "user_default",
        "client_b",
        "client_default",
    ]
    limits = {name: float(rank + 1) for rank, name in enumerate(order)}
    quotas = make(**limits)
    for rank, name in enumerate(order):
        assert quotas.produce.limit("a", "b") == rank + 1
        quotas.apply({entity(name): {RATE: None}})
    assert quotas.produce.limit("a", "b") is None
    assert not quotas.is_enabled


def test_a_user_limit_is_shared_by_its_clients_a_default_by_nobody() -> None:
    quotas = make(user_a=1000, client_default=1000)
    for client_id in ("x", "y"):
        quotas.produce.record_and_throttle("a", client_id, 6000, EPOCH_MS)
    assert quotas.produce.record_and_throttle("a", "z", 0, EPOCH_MS) > 0
    assert quotas.produce.record_and_throttle("other", "x", 6000, EPOCH_MS) == 0
    assert quotas.produce.record_and_throttle("other", "y", 6000, EPOCH_MS) == 0
    assert set(quotas.produce.sensors) == {("a", ""), ("", "x"), ("", "y")}


@pytest.mark.parametrize("client_id", ["", None])
def test_without_a_client_id_only_users_limits_count(client_id: str | None) -> None:
    assert make(client_default=1, user_a__client_default=2).produce.limit("a", client_id) is None
    assert make(client_default=1, user_a=3).produce.limit("a", client_id) == 3


def test_a_changed_limit_keeps_what_was_measured() -> None:
    quotas = make(client_b=10_000)
    assert quotas.produce.record_and_throttle("a", "b", 20_000, EPOCH_MS) == 0
    quotas.apply({entity("client_b"): {RATE: 1000}})
    # 20000 over ten whole windows is 2000/s, twice the limit: rest as long as the window.
    assert quotas.produce.record_and_throttle("a", "b", 0, EPOCH_MS) == 10_000


def test_the_most_that_one_fetch_may_return() -> None:
    quotas = make()
    assert quotas.fetch.max_value_in_window("a", "b") == 2**31 - 1
    quotas.apply({entity("client_b"): {"consumer_byte_rate": 1000.0}})
    assert quotas.fetch.max_value_in_window("a", "b") == 10_000
    quotas.apply({entity("client_b"): {"consumer_byte_rate": 1e18}})
    assert quotas.fetch.max_value_in_window("a", "b") == 2**31 - 1


def test_the_rest_for_request_time_ends_with_the_window() -> None:
    quotas = make()
    quotas.apply({entity("client_b"): {"request_percentage": 1.0}})
    for second in range(10):
        assert quotas.request.record_and_throttle("a", "b", 0.4, EPOCH_MS + second * 1000) == 0
    assert quotas.request.record_and_throttle("a", "b", 67.1, EPOCH_MS + 10_500) == 1000


def test_silent_sensors_are_dropped_and_begin_anew() -> None:
    quotas = make(client_default=1000)
    quotas.produce.record_and_throttle("a", "b", 50_000, EPOCH_MS)
    quotas.expire(EPOCH_MS + 3_600_000)
    assert quotas.produce.sensors
    quotas.expire(EPOCH_MS + 3_600_001)
    assert not quotas.produce.sensors
    assert quotas.produce.record_and_throttle("a", "b", 0, EPOCH_MS + 3_600_002) == 0


def test_addresses_and_unknown_names_enable_nothing() -> None:
    quotas = make()
    quotas.apply({(("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0}, entity("user_a"): {"new_rate": 5.0}})
    assert not quotas.is_enabled
