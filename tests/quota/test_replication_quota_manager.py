"""The limit of replication on one side: which partitions count, and when the rate is above it."""

from __future__ import annotations

import pytest

from barnabas.quota.replication_quota_manager import ALL_REPLICAS, ReplicationQuotaManager, throttled_partitions

EPOCH_MS = 1_700_000_000_000


class Clock:
    ms = EPOCH_MS

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quota(clock: Clock) -> ReplicationQuotaManager:
    return ReplicationQuotaManager(11, 1, clock)


@pytest.mark.parametrize(
    ("replicas", "found"),
    [
        (["0:1", "1:2", "2:1"], {0, 2}),
        (["0:2"], set()),
        ([""], set()),
        ([], set()),
        (["*"], ALL_REPLICAS),
    ],
)
def test_which_partitions_a_topic_throttles_on_a_broker(replicas: list[str], found: set[int]) -> None:
    assert throttled_partitions(replicas, 1) == found


def test_a_topic_is_throttled_until_its_list_is_empty(quota: ReplicationQuotaManager) -> None:
    quota.mark_throttled("t", throttled_partitions(["0:1"], 1))
    quota.mark_throttled("u", throttled_partitions(["*"], 1))
    assert [quota.is_throttled("t", 0), quota.is_throttled("t", 1), quota.is_throttled("u", 9)] == [True, False, True]
    quota.mark_throttled("t", throttled_partitions([""], 1))
    assert not quota.is_throttled("t", 0)
    assert "topics=['u']" in repr(quota)


def test_the_limit_holds_over_time(quota: ReplicationQuotaManager, clock: Clock) -> None:
    quota.record(5000)
    assert not quota.is_exceeded(), "there is no limit yet"
    quota.limit = 1000
    assert quota.is_exceeded()
    clock.ms += 4_999
    assert quota.is_exceeded()
    clock.ms += 1
    assert not quota.is_exceeded()
    assert quota.byte_rate() == 1000


def test_one_second_may_be_used_at_once(quota: ReplicationQuotaManager) -> None:
    quota.limit = 1000
    quota.record(1000)
    assert not quota.is_exceeded()
    quota.record(1)
    assert quota.is_exceeded()
