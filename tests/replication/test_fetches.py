"""Whom a change wakes."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.replication.fetch_reader import FetchParams, Reading
from barnabas.replication.fetch_session import FetchPartition, FetchSession
from barnabas.steps import start
from tests.at_once import at_once
from tests.replication.brokers import Cluster
from tests.replication.hosting import Hosting, topic_id
from tests.short_turns import set_turn

COUNT = 5


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


@pytest.mark.parametrize("changed", range(COUNT))
@pytest.mark.parametrize("read_before", range(COUNT))
@pytest.mark.parametrize("in_session", [True, False])
def test_a_partition_that_changes_while_others_are_read_is_not_missed(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch, in_session: bool, read_before: int, changed: int
) -> None:
    """It is read already, or it is not yet: the wait ends with its records, and not with the time."""
    hosting.create_topic("t", COUNT, number=1)
    params = FetchParams(17, -1, 500, 1, 1 << 20, 0, only_changes=in_session)
    partitions = [FetchPartition("t", topic_id(1), index, 0, 1 << 20) for index in range(COUNT)]
    session = None
    if in_session:
        session = FetchSession(1, False, True, 0)
        at_once(session.update(partitions, ()))
        for wanted in session.partitions.values():
            wanted.sent_high_watermark = wanted.sent_log_start_offset = 0
    have_read = 0
    read = Reading.read

    def counted(self: Reading, wanted: FetchPartition) -> bool:
        nonlocal have_read
        have_read += 1
        return read(self, wanted)

    monkeypatch.setattr(Reading, "read", counted)
    set_turn(monkeypatch, 1)
    waiting = start(hosting.replicas.fetches.fetch(params, partitions, session), hosting.loop)
    while have_read < read_before:
        hosting.loop.run_until_complete(asyncio.sleep(0))
    hosting.append("t", b"a", index=changed)
    hosting.advance(100)
    found = waiting.result()
    assert [wanted.index for wanted, data in found.results if not isinstance(data.records, bytes)] == [changed]
    assert hosting.replicas.delayed_fetches.watched == 0
