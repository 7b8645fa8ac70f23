"""Whom a change wakes."""

from __future__ import annotations

import pytest

from barnabas.replication import fetch_reader
from barnabas.replication.fetch_reader import FetchParams, FetchPartition
from barnabas.replication.fetch_session import FetchSession
from tests.replication.brokers import Cluster
from tests.replication.hosting import Hosting, topic_id


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


def test_a_partition_that_changes_after_its_slice_is_read_again(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_reader, "READS_PER_TURN", 1)
    hosting.create_topic("t", 8, number=1)
    params = FetchParams(17, -1, 500, 1, 1 << 20, 0, only_changes=True)
    session = FetchSession(1, False, True, 0)
    session.update([FetchPartition("t", topic_id(1), index, 0, 1 << 20) for index in range(8)], ())
    for wanted in session.partitions.values():
        wanted.sent_high_watermark = wanted.sent_log_start_offset = 0
    reading = hosting.loop.create_task(hosting.replicas.fetch_in_slices(params, (), session))
    hosting.spin()
    hosting.append("t", b"a", index=1)
    hosting.advance(100)
    assert [wanted.index for wanted, _ in reading.result().results] == [1]
