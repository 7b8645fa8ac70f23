"""Replication between brokers: acknowledged records are on all in-sync replicas, and the ISR follows who is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replication.brokers import Cluster

SHRINKS_WITHIN_MS = 45_000
"""replica.lag.time.max.ms, and the half of it that a follower may be late before the timer looks."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def min_isr_2() -> Iterator[Cluster]:
    made = Cluster(min_insync_replicas=2)
    yield made
    made.close()


def test_acknowledged_records_are_on_all_replicas(cluster: Cluster) -> None:
    cluster.create_topic()
    cluster.advance(1000)
    produced = cluster[1].produce(b"a", b"b")
    assert produced.outcome == "waiting"
    cluster.advance(10)
    assert produced.outcome == "NONE"
    assert [cluster[each].log().log_end_offset for each in (1, 2, 3)] == [2, 2, 2]
    cluster.advance(600)
    cluster.assert_identical()
    assert cluster.proposals == 0


def changes(cluster: Cluster) -> list[tuple[int, int]]:
    """Return how often each broker shrank an ISR, and how often it expanded one."""
    found = [cluster[each].replicas.replicated_partitions for each in (1, 2, 3)]
    return [(each.isr_changes.shrinks, each.isr_changes.expands) for each in found if each is not None]


def test_a_follower_that_lags_leaves_the_isr_and_comes_back(cluster: Cluster) -> None:
    cluster.create_topic()
    cluster.advance(1000)
    cluster.isolate(3)
    first = cluster[1].produce(b"a")
    cluster.advance(29_000)
    assert (first.outcome, cluster.isr()) == ("waiting", (1, 2, 3))
    cluster.advance(SHRINKS_WITHIN_MS - 29_000)
    assert (first.outcome, cluster.isr()) == ("NONE", (1, 2))
    assert changes(cluster) == [(1, 0), (0, 0), (0, 0)]
    second = cluster[1].produce(b"b")
    cluster.advance(10)
    assert second.outcome == "NONE"
    cluster.heal()
    cluster.advance(1000)
    assert cluster.isr() == (1, 2, 3)
    assert changes(cluster) == [(1, 1), (0, 0), (0, 0)], "the leader counts"
    third = cluster[1].produce(b"c")
    cluster.advance(1000)
    assert third.outcome == "NONE"
    cluster.assert_identical()


def test_a_killed_follower_comes_back_to_an_idle_partition(cluster: Cluster) -> None:
    """Its first fetch comes while its broker is fenced, and no later one names the partition."""
    cluster.create_topic()
    cluster.advance(1000)
    cluster[3].kill()
    cluster.fence(3)
    produced = cluster[1].produce(b"a")
    cluster.advance(100)
    assert (produced.outcome, cluster.isr()) == ("NONE", (1, 2))
    cluster[3].start()
    cluster.advance(400)
    assert cluster[3].log().log_end_offset == 1
    assert cluster.isr() == (1, 2), "it is fenced still"
    cluster.advance(200)
    assert cluster.isr() == (1, 2, 3)
    cluster.advance(1000)
    cluster.assert_identical()


@pytest.mark.parametrize("lost_answers", [0, 1])
def test_two_followers_come_back_to_an_idle_partition_at_once(cluster: Cluster, lost_answers: int) -> None:
    cluster.create_topic()
    cluster[1].produce(b"a")
    cluster.advance(1000)
    cluster.isolate(1)
    cluster[1].produce(b"b")
    cluster.advance(SHRINKS_WITHIN_MS)
    assert cluster.isr() == (1,)
    cluster.heal()
    cluster.lost_answers = lost_answers
    cluster.advance(1000)
    assert cluster.isr() == (1, 2, 3)


def test_too_few_in_sync_replicas(min_isr_2: Cluster) -> None:
    cluster = min_isr_2
    cluster.create_topic()
    cluster.advance(1000)
    cluster.isolate(1)
    waiting = cluster[1].produce(b"a", timeout_ms=60_000)
    cluster.advance(SHRINKS_WITHIN_MS)
    assert cluster.isr() == (1,)
    assert cluster[1].produce(b"b").outcome == "NOT_ENOUGH_REPLICAS"
    assert cluster[1].produce(b"c", acks=1).outcome == "NONE"
    assert (waiting.outcome, cluster[1].log().high_watermark) == ("waiting", 0)
    proposals = cluster.proposals
    cluster.advance(14_000)
    assert cluster.proposals == proposals, "a follower that has all that is committed and is not there stays outside"
    cluster.heal()
    cluster.advance(200)
    assert waiting.outcome == "NONE"
    cluster.advance(1000)
    cluster.assert_identical()


def test_a_producer_may_give_up_waiting(min_isr_2: Cluster) -> None:
    cluster = min_isr_2
    cluster.create_topic()
    cluster.advance(1000)
    cluster.isolate(1)
    waiting = cluster[1].produce(b"a", timeout_ms=20_000)
    cluster.advance(20_001)
    assert waiting.outcome == "REQUEST_TIMED_OUT"


def test_a_new_leader_makes_the_old_one_truncate(cluster: Cluster) -> None:
    cluster.create_topic()
    committed = cluster[1].produce(b"a")
    cluster.advance(1000)
    assert committed.outcome == "NONE"
    cluster.isolate(1)
    lost = cluster[1].produce(b"lost", b"lost too")
    cluster.fence(1)
    cluster.advance(20)
    assert (cluster.now().leader, lost.outcome) == (2, "NOT_LEADER_OR_FOLLOWER")
    assert not cluster[2].replicas.fetchers, "it follows nobody now"
    kept = cluster[2].produce(b"kept")
    cluster.advance(100)
    assert kept.outcome == "NONE"
    assert cluster[1].log().log_end_offset == 3
    cluster.heal()
    cluster.unfence(1)
    cluster.advance(1000)
    assert cluster.isr() == (1, 2, 3)
    assert cluster[1].log().log_end_offset == 2
    cluster.assert_identical()
    assert not [each for each in cluster[1].replicas.fetchers if each.leader != 2]


def test_lost_answers_of_the_controller_change_nothing_twice(cluster: Cluster) -> None:
    """The change was made: the same proposal is rejected then, and the metadata ends the change."""
    cluster.create_topic()
    cluster.advance(1000)
    cluster.isolate(3)
    produced = cluster[1].produce(b"a")
    cluster.lost_answers = 1
    cluster.advance(SHRINKS_WITHIN_MS)
    assert (cluster.isr(), produced.outcome, cluster.proposals) == ((1, 2), "NONE", 1)
    cluster.heal()
    cluster.is_behind.add(1)
    cluster.lost_answers = 1
    cluster.advance(1000)
    assert (cluster.isr(), cluster[1].partition().isr, cluster.proposals) == ((1, 2, 3), (1, 2), 3)
    cluster.is_behind.clear()
    cluster.publish()
    cluster.advance(100)
    assert cluster[1].partition().isr == (1, 2, 3)
    produced = cluster[1].produce(b"b")
    cluster.advance(1000)
    assert produced.outcome == "NONE"
    cluster.assert_identical()


def test_many_partitions_change_in_few_requests() -> None:
    cluster = Cluster()
    cluster.create_topic(*[(1, 2, 3)] * 60)
    cluster.advance(1000)
    cluster.isolate(3)
    for index in range(60):
        cluster[1].produce(b"a", acks=1, index=index)
    cluster.advance(SHRINKS_WITHIN_MS)
    assert {cluster.isr(index) for index in range(60)} == {(1, 2)}
    assert cluster.proposals <= 2
    cluster.heal()
    cluster.advance(2000)
    assert {cluster.isr(index) for index in range(60)} == {(1, 2, 3)}
    for index in range(60):
        cluster.assert_identical(index)
    cluster.close()


def test_a_topic_is_deleted_and_created_again_while_it_is_fetched(cluster: Cluster) -> None:
    old = cluster.create_topic((1, 2, 3), (2, 3, 1))
    cluster[1].produce(b"old")
    cluster.advance(200)
    cluster.isolate(1)
    waiting = cluster[1].produce(b"old too")
    cluster.delete_topic()
    new = cluster.create_topic((1, 2, 3))
    cluster.heal()
    assert old != new
    assert waiting.outcome == "UNKNOWN_TOPIC_OR_PARTITION"
    assert [repr(cluster[each].replicas.replicated_partitions).count("led=1") for each in (1, 2, 3)] == [1, 0, 0]
    produced = cluster[1].produce(b"new")
    cluster.advance(1000)
    assert produced.outcome == "NONE"
    assert [cluster[each].log().log_end_offset for each in (1, 2, 3)] == [1, 1, 1]
    cluster.assert_identical()
    assert {each.leader for broker in cluster.brokers.values() for each in broker.replicas.fetchers} == {1}


def test_a_broker_that_is_stopped_in_order_knows_what_is_committed(cluster: Cluster) -> None:
    cluster.create_topic()
    cluster[1].produce(b"a")
    cluster.advance(1000)
    cluster[3].stop()
    cluster.fence(3)
    cluster[1].produce(b"b")
    cluster.advance(1000)
    epoch = cluster[3].epoch
    cluster[3].start()
    assert cluster[3].logs.had_clean_shutdown
    assert cluster[3].log().high_watermark == 1
    cluster.advance(1500)
    assert cluster.isr() == (1, 2, 3)
    assert cluster[3].epoch > epoch
    cluster.assert_identical()


def test_a_closed_manager_fetches_and_proposes_nothing(cluster: Cluster) -> None:
    cluster.create_topic((1, 2, 3), (2, 1, 3))
    cluster.advance(1000)
    cluster[1].replicas.close()
    cluster.isolate(3)
    cluster[1].produce(b"a")
    cluster.advance(1000)
    asked = len([each for each in cluster.requests if each[0] == 1])
    cluster.advance(60_000)
    assert len([each for each in cluster.requests if each[0] == 1]) == asked
    assert cluster.isr() == (1, 2, 3)
