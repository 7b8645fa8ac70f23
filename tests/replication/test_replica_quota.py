"""Throttled replication (KIP-73): a copy that is behind comes at the set rate, and an in-sync replica is never held up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.quota.replication_quota_manager import ALL_REPLICAS, ReplicationQuotaManager
from barnabas.replication.replica_quota import UNBOUNDED
from tests.replication.brokers import Cluster

RATE = 1_000_000
BATCH = 100_000
BATCHES = 60
"""Six seconds at the rate."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


def quota(cluster: Cluster) -> ReplicationQuotaManager:
    made = ReplicationQuotaManager(11, 1, cluster.now_ms)
    made.limit = RATE
    made.mark_throttled("orders", ALL_REPLICAS)
    return made


def leave_behind(cluster: Cluster) -> None:
    """Let broker 3 miss records while it is down."""
    cluster.create_topic()
    cluster.advance(1000)
    cluster[3].kill()
    cluster.fence(3)
    for _ in range(BATCHES):
        cluster[1].produce(bytes(BATCH))
    # A replica that was caught up a moment ago holds up the high watermark, in the ISR or not.
    cluster.advance(31_000)
    assert cluster.isr() == (1, 2)


def seconds_until_in_sync(cluster: Cluster) -> float:
    began = cluster.loop.time()
    while cluster.isr() != (1, 2, 3):
        cluster.advance(50)
        assert cluster.loop.time() - began < 60, "it never comes into sync"
    return cluster.loop.time() - began


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_copy_comes_at_the_set_rate(cluster: Cluster, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_behind(cluster)
    if side == "follower":
        make = cluster[3].replicated

        def with_quota(replicas):  # type: ignore[no-untyped-def]
            replicas.follower_quota = quota(cluster)
            return make(replicas)

        # The fetchers get the quota when they are made.
        monkeypatch.setattr(cluster[3], "replicated", with_quota)
    else:
        cluster[1].replicas.leader_quota = quota(cluster)
    cluster[3].start()
    produced = []
    for _ in range(20):
        cluster.advance(100)
        produced.append(cluster[1].produce(b"small"))
        cluster.advance(10)
        assert produced[-1].outcome == "NONE", "the replica that is in sync gets each record at once"
    assert cluster.isr() == (1, 2)
    took = 2.2 + seconds_until_in_sync(cluster)
    assert 0.75 <= took * RATE / (BATCH * BATCHES) <= 1.25, took
    cluster.advance(1000)
    cluster.assert_identical()


def test_a_copy_without_a_throttle_comes_at_once(cluster: Cluster) -> None:
    leave_behind(cluster)
    cluster[1].replicas.leader_quota = made = quota(cluster)
    made.mark_throttled("orders", ())
    cluster[3].start()
    assert seconds_until_in_sync(cluster) < 1


def test_nothing_is_counted_without_a_quota() -> None:
    UNBOUNDED.record(1 << 40)
    assert not UNBOUNDED.is_throttled("orders", 0)
    assert not UNBOUNDED.is_exceeded()
