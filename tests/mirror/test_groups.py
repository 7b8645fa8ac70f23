"""The offsets of groups at the target."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from barnabas.client.admin import Admin, TopicPartition
from tests.mirror.two_clusters import TwoClusters, commit_offsets, fill_in_transaction, next_values
from tests.retries.records import values

pytestmark = pytest.mark.slow


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
