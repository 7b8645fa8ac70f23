"""DeleteRecords waits until the followers have deleted too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replication.brokers import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.create_topic()
    made[1].produce(*[b"a"] * 10)
    made.advance(1000)
    yield made
    made.close()


def test_it_waits_for_the_followers(cluster: Cluster) -> None:
    deleted = cluster[1].delete_before(4)
    cluster.advance(1)
    assert deleted.outcome == "waiting"
    cluster.advance(1100)
    assert (deleted.outcome, deleted.low_watermark) == ("NONE", 4)
    assert [cluster[each].log().log_start_offset for each in (1, 2, 3)] == [4, 4, 4]


def test_it_gives_up_after_its_time(cluster: Cluster) -> None:
    cluster.isolate(3)
    deleted = cluster[1].delete_before(4, timeout_ms=3000)
    cluster.advance(2999)
    assert deleted.outcome == "waiting"
    cluster.advance(2)
    assert (deleted.outcome, deleted.low_watermark) == ("REQUEST_TIMED_OUT", -1)


def test_it_does_not_wait_for_a_broker_that_is_not_in_service(cluster: Cluster) -> None:
    cluster[3].kill()
    deleted = cluster[1].delete_before(4)
    cluster.advance(2000)
    assert deleted.outcome == "waiting"
    cluster.fence(3)
    cluster.advance(10)
    assert (deleted.outcome, deleted.low_watermark) == ("NONE", 4)
    deleted = cluster[1].delete_before(5)
    cluster.advance(1100)
    assert (deleted.outcome, deleted.low_watermark) == ("NONE", 5)


def test_it_stops_waiting_for_a_broker_that_was_not_in_sync_anyway(cluster: Cluster) -> None:
    """The partition does not change then, only the broker."""
    cluster.isolate(3)
    cluster[1].produce(b"a")
    cluster.advance(45_000)
    assert cluster.isr() == (1, 2)
    deleted = cluster[1].delete_before(4)
    cluster.advance(2000)
    assert deleted.outcome == "waiting"
    cluster.fence(3)
    cluster.advance(10)
    assert deleted.outcome == "NONE"


def test_the_loss_of_the_leadership_ends_the_wait(cluster: Cluster) -> None:
    cluster.isolate(1)
    deleted = cluster[1].delete_before(4)
    cluster.fence(1)
    cluster.advance(10)
    assert (deleted.outcome, deleted.low_watermark) == ("NOT_LEADER_OR_FOLLOWER", -1)


def test_the_deletion_of_the_topic_ends_the_wait(cluster: Cluster) -> None:
    cluster.isolate(1)
    deleted = cluster[1].delete_before(4)
    cluster.delete_topic()
    cluster.advance(10)
    assert deleted.outcome == "UNKNOWN_TOPIC_OR_PARTITION"


def test_what_was_deleted_everywhere_is_answered_at_once(cluster: Cluster) -> None:
    cluster[1].delete_before(4)
    cluster.advance(1100)
    deleted = cluster[1].delete_before(3)
    assert (deleted.outcome, deleted.low_watermark) == ("NONE", 4)
