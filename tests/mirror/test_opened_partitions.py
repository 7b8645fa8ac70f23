"""Where a copy begins, and why it may not begin."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Admin, TopicPartition, results
from tests.mirror.two_clusters import BEGAN_MS, HOUR_MS, TwoClusters, commit_offsets, fill
from tests.retries.records import values, write

pytestmark = pytest.mark.slow


def delete_topic(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        results(admin.delete_topics([topic]))


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    with Admin(bootstrap) as admin:
        results(admin.delete_records({TopicPartition(topic, 0): before}))


def test_since_a_time(orders: TwoClusters) -> None:
    commit_offsets(orders.addresses[0], "old", "orders", {0: 2, 1: 2})
    since = str(BEGAN_MS + 15 * HOUR_MS)
    assert orders.counts("--since", since) == {"orders": (5, 0, 0)}
    assert values(orders.copied()) == ["16", "18", "15", "17", "19"]
    # The position is noted: a later --since changes nothing.
    fill(orders.addresses[0], "orders", [20])
    assert orders.counts("--since", "-1h") == {"orders": (1, 0, 0)}
    with Admin(orders.addresses[1]) as admin:
        assert {each.offset for each in admin.list_group_offsets("old").values()} == {0}


def test_records_that_a_retention_deleted_are_an_error(clusters: TwoClusters) -> None:
    clusters.source.create_topic("orders", partitions=1)
    fill(clusters.addresses[0], "orders", range(10), partitions=1)
    assert clusters.counts() == {"orders": (10, 0, 0)}
    fill(clusters.addresses[0], "orders", range(10, 20), partitions=1)
    delete_records(clusters.addresses[0], "orders", 13)
    assert clusters.refused() == (
        "error: 3 offsets of partition orders-0 (10 to 12) were deleted at the source before being copied"
        " (--skip-deleted goes on after them)"
    )
    outcome = clusters.run("--skip-deleted")
    assert "3 offsets of partition orders-0 (10 to 12) are skipped" in outcome.stderr
    assert values(clusters.copied(partitions=1)) == [str(each) for each in [*range(10), *range(13, 20)]]
    assert clusters.counts() == {"orders": (0, 0, 0)}


@pytest.mark.conform
def test_a_position_that_is_skipped_is_noted_without_a_record(clusters: TwoClusters) -> None:
    clusters.source.create_topic("orders", partitions=1)
    fill(clusters.addresses[0], "orders", range(3), partitions=1)
    assert clusters.counts() == {"orders": (3, 0, 0)}
    fill(clusters.addresses[0], "orders", range(3, 5), partitions=1)
    delete_records(clusters.addresses[0], "orders", 5)
    assert clusters.counts("--skip-deleted") == {"orders": (0, 0, 0)}
    assert clusters.counts() == {"orders": (0, 0, 0)}


def test_a_topic_that_was_created_again_is_another_topic(orders: TwoClusters) -> None:
    assert orders.counts() == {"orders": (20, 0, 0)}
    delete_topic(orders.addresses[1], "orders")
    assert "topic orders was deleted at the target after records of it were mirrored" in orders.refused()
    orders.target.create_topic("orders", partitions=2)
    assert "topic orders was deleted and created again at the target" in orders.refused()
    delete_topic(orders.addresses[0], "orders")
    orders.source.create_topic("orders", partitions=2)
    assert "topic orders was deleted and created again at the source since the mirror began" in orders.refused()


def test_a_target_with_records_of_others(orders: TwoClusters) -> None:
    orders.target.create_topic("orders", partitions=2)
    write(orders.addresses[1], "orders", [(None, "mine")], partition=1)
    foreign = "partition orders-1 of the target has a record at offset {} that the mirror did not write"
    assert foreign.format(0) in orders.refused()
    delete_topic(orders.addresses[1], "orders")
    assert orders.counts() == {"orders": (20, 0, 0)}
    write(orders.addresses[1], "orders", [(None, "mine")], partition=1)
    assert foreign.format(11) in orders.refused()


@pytest.mark.conform
def test_another_mirror_is_foreign(orders: TwoClusters) -> None:
    assert orders.counts() == {"orders": (20, 0, 0)}
    assert "that the mirror did not write" in orders.refused("--name", "second")
