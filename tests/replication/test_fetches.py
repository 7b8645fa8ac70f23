"""Whom a change wakes."""

from __future__ import annotations

from tests.replication.brokers import Cluster


def test_a_moved_high_watermark_does_not_end_the_fetches_of_followers() -> None:
    """Else each record would cost two fetches of each follower. They learn of it with the next records, or in time."""
    cluster = Cluster()
    cluster.create_topic()
    cluster.advance(1000)
    for _ in range(100):
        cluster[1].produce(b"a")
        cluster.advance(10)
    before = len(cluster.requests)
    for _ in range(100):
        cluster[1].produce(b"a")
        cluster.advance(10)
    assert len(cluster.requests) - before <= 204
    assert [cluster[each].log().high_watermark for each in (1, 2, 3)] == [200, 199, 199]
    cluster.advance(600)
    cluster.assert_identical()
    cluster.close()


def test_a_high_watermark_that_moves_while_a_follower_waits_reads_nothing_again() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.advance(1000)
    traffic = cluster[1].partition().topic.traffic
    before = traffic.fetches
    cluster[1].produce(b"a")
    cluster.advance(100)
    assert (cluster[1].log().high_watermark, traffic.fetches - before) == (1, 4), "two wake, and two ask again"
    cluster.close()
