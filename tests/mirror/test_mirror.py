"""A mirror between two brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client.admin import (
    Admin,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicMetadata,
    TopicPartition,
    result,
    results,
)
from barnabas.mirror.mirror import transactional_id
from tests.mirror.two_clusters import (
    BEGAN_MS,
    HOUR_MS,
    TwoClusters,
    commit_offsets,
    fill,
    fill_in_transaction,
    next_values,
    without_offsets,
)
from tests.retries.records import values, write

pytestmark = pytest.mark.slow


@pytest.fixture
def orders(clusters: TwoClusters) -> TwoClusters:
    """A topic with two partitions and twenty records, at the source."""
    clusters.source.create_topic("orders", partitions=2)
    fill(clusters.addresses[0], "orders", range(20))
    return clusters


def delete_topic(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        results(admin.delete_topics([topic]))


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    with Admin(bootstrap) as admin:
        results(admin.delete_records({TopicPartition(topic, 0): before}))


def test_records_are_copied_once_as_they_are(orders: TwoClusters) -> None:
    assert orders.counts() == {"orders": (20, 0, 0)}
    fill(orders.addresses[0], "orders", range(20, 30))
    assert orders.counts() == {"orders": (10, 0, 0)}
    assert without_offsets(orders.copied()) == without_offsets(orders.original())


def test_settings_partitions_and_new_ones_are_copied_and_internal_topics_are_not(clusters: TwoClusters) -> None:
    source, target = (Admin(each) for each in clusters.addresses)
    with source, target:
        settings = {"cleanup.policy": "compact", "retention.ms": "1234567", "message.timestamp.before.max.ms": "1"}
        results(source.create_topics([NewTopic("bills", 3, 1, settings), NewTopic("other", 1), NewTopic("__mine", 1)]))
        outcome = clusters.run("--topics", "bill.*,nothing")
        assert "message.timestamp.before.max.ms=1 is left out: it would reject old records" in outcome.stderr
        topics = {each.name: each for each in target.list_topics(internal=True)}
        assert {each for each in topics if "state" not in each and "offsets" not in each} == {
            "bills",
            "__barnabas_mirrors",
        }
        assert len(topics["bills"].partitions) == 3
        resource = ConfigResource(ResourceType.TOPIC, "bills")
        entries = result(target.describe_configs([resource])[resource])
        assert {each.name: each.value for each in entries if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG} == {
            "cleanup.policy": "compact",
            "retention.ms": "1234567",
        }
        results(source.create_partitions({"bills": 4}))
        assert clusters.run("--topics", "bills").exit_code == 0
        found = target.describe_topics(["bills"])["bills"]
        assert isinstance(found, TopicMetadata)
        assert len(found.partitions) == 4


def test_groups_go_on_at_the_next_record(orders: TwoClusters) -> None:
    source, target = orders.addresses
    # Partition 0 has the even numbers, partition 1 the odd ones; the topic's first transaction is between.
    fill_in_transaction(source, "orders", ["aborted"], commit=False)
    fill_in_transaction(source, "orders", ["20", "22"], commit=True)
    for at in range(15):
        commit_offsets(source, f"at-{at}", "orders", {0: at, 1: 10})
    assert orders.counts() == {"orders": (22, 0, 0)}
    # 0 to 9 are the records of before; 10 is aborted, 11 its marker, 12 and 13 are records, 14 is a marker.
    expected = ["0", "2", "4", "6", "8", "10", "12", "14", "16", "18", "20", "20", "20", "22"]
    with Admin(target) as admin:
        copied = [each for each in orders.copied() if each.partition == 0]
        for at, value in enumerate(expected):
            there = admin.list_group_offsets(f"at-{at}")
            begin = there[TopicPartition("orders", 0)].offset
            assert values(each for each in copied if each.offset >= begin)[0] == value, at
        assert admin.list_group_offsets("at-14")[TopicPartition("orders", 0)].offset == copied[-1].offset + 1


def test_a_group_moves_but_not_where_it_works_at_the_target(orders: TwoClusters) -> None:
    source, target = orders.addresses
    commit_offsets(source, "billing", "orders", {0: 3})
    commit_offsets(source, "shop", "orders", {0: 3})
    assert orders.counts() == {"orders": (20, 0, 0)}
    commit_offsets(source, "billing", "orders", {0: 5})
    commit_offsets(source, "shop", "orders", {0: 5})
    commit_offsets(target, "shop", "orders", {0: 8})
    consumer = Consumer({"bootstrap.servers": target, "group.id": "billing", "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    outcome = orders.run()
    assert "group billing has members at the target: its offsets are not touched" in outcome.stderr
    assert "group shop is at 8 of orders-0 at the target, beyond 5: it is not moved back" in outcome.stderr
    consumer.close()
    assert orders.run("--no-groups").exit_code == 0
    where = TopicPartition("orders", 0)
    with Admin(target) as admin:
        assert admin.list_group_offsets("billing")[where].offset == 3
        assert orders.run().exit_code == 0
        assert admin.list_group_offsets("billing")[where].offset == 5
        assert admin.list_group_offsets("shop")[where].offset == 8


def test_the_second_cluster_takes_over_with_its_groups(orders: TwoClusters) -> None:
    source, target = orders.addresses
    commit_offsets(source, "billing", "orders", {0: 0, 1: 0})
    processed = next_values(source, "billing", "orders", 9)
    assert orders.counts() == {"orders": (20, 0, 0)}
    # The source is not asked any more.
    processed += next_values(target, "billing", "orders", 11)
    assert sorted(processed, key=int) == [str(each) for each in range(20)]


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
        " (--skip-deleted goes on behind them)"
    )
    outcome = clusters.run("--skip-deleted")
    assert "3 offsets of partition orders-0 (10 to 12) are skipped" in outcome.stderr
    assert values(clusters.copied(partitions=1)) == [str(each) for each in [*range(10), *range(13, 20)]]
    assert clusters.counts() == {"orders": (0, 0, 0)}


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


def test_a_target_with_fewer_partitions(orders: TwoClusters) -> None:
    orders.target.create_topic("orders", partitions=1)
    assert orders.refused() == (
        "error: topic orders has fewer partitions at the target (1) than at the source (2)"
        " (`barnabas topic alter orders -p 2` at the target adds them, or leave it out with --topics)"
    )
    with Admin(orders.addresses[1]) as admin:
        results(admin.create_partitions({"orders": 2}))
    assert orders.counts() == {"orders": (20, 0, 0)}


def test_a_target_with_records_of_others(orders: TwoClusters) -> None:
    orders.target.create_topic("orders", partitions=2)
    write(orders.addresses[1], "orders", [(None, "mine")], partition=1)
    foreign = "partition orders-1 of the target has a record at offset {} that the mirror did not write"
    assert foreign.format(0) in orders.refused()
    delete_topic(orders.addresses[1], "orders")
    assert orders.counts() == {"orders": (20, 0, 0)}
    write(orders.addresses[1], "orders", [(None, "mine")], partition=1)
    assert foreign.format(11) in orders.refused()


def test_another_mirror_is_foreign(orders: TwoClusters) -> None:
    assert orders.counts() == {"orders": (20, 0, 0)}
    assert "that the mirror did not write" in orders.refused("--name", "second")


@pytest.mark.parametrize("stored", [True, False])
def test_a_lost_response_doubles_nothing(orders: TwoClusters, stored: bool) -> None:
    if stored:
        orders.target.drop_response_after_write("Produce")
    else:
        orders.target.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    assert orders.counts() == {"orders": (20, 0, 0)}
    assert without_offsets(orders.copied()) == without_offsets(orders.original())
    orders.target.heal()
    commit_offsets(orders.addresses[0], "g", "orders", {0: 7, 1: 10})
    assert orders.counts() == {"orders": (0, 0, 0)}
    assert next_values(orders.addresses[1], "g", "orders", 3) == ["14", "16", "18"]


def test_a_run_aborts_what_the_one_before_left_open(orders: TwoClusters) -> None:
    clusters = orders
    with Admin(clusters.addresses[0]) as admin:
        name = str(admin.describe_cluster().cluster_id)
    clusters.target.create_topic("orders", partitions=2)
    killed = Producer({"bootstrap.servers": clusters.addresses[1], "transactional.id": transactional_id(name)})
    killed.init_transactions(30)
    killed.begin_transaction()
    killed.produce("orders", "half", partition=0)
    killed.flush(30)
    assert clusters.counts() == {"orders": (20, 0, 0)}
    assert without_offsets(clusters.copied()) == without_offsets(clusters.original())


def test_many_transactions_leave_few_notes(orders: TwoClusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.mirror.source_records.BATCH_RECORDS", 1)
    monkeypatch.setattr("barnabas.mirror.progress.RUNS_PER_NOTE", 4)
    commit_offsets(orders.addresses[0], "g", "orders", {0: 7, 1: 10})
    assert orders.counts() == {"orders": (20, 0, 0)}
    monkeypatch.undo()
    assert orders.counts() == {"orders": (0, 0, 0)}
    assert next_values(orders.addresses[1], "g", "orders", 3) == ["14", "16", "18"]
