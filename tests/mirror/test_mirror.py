"""A mirror between two brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from barnabas.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType, results
from barnabas.mirror.mirror import transactional_id
from tests.mirror.two_clusters import TwoClusters, commit_offsets, fill, next_values, without_offsets
from tests.retries.records import write

pytestmark = pytest.mark.slow


def test_records_are_copied_once_as_they_are(orders: TwoClusters) -> None:
    assert orders.counts() == {"orders": (20, 0, 0)}
    fill(orders.addresses[0], "orders", range(20, 30))
    assert orders.counts() == {"orders": (10, 0, 0)}
    assert without_offsets(orders.copied()) == without_offsets(orders.original())


@pytest.mark.conform
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


def test_a_record_that_the_target_rejects(clusters: TwoClusters) -> None:
    clusters.source.create_topic("orders", partitions=1)
    write(clusters.addresses[0], "orders", [(None, "small"), (None, "x" * 2000)])
    with Admin(clusters.addresses[1]) as admin:
        results(admin.create_topics([NewTopic("orders", 1, 1, {"max.message.bytes": "1000"})]))
        said = clusters.refused()
        assert said.startswith("error: the target rejected a record of partition orders-0: ")
        assert said.endswith("(raise max.message.bytes of the topic at the target, and run the same command)")
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        admin.alter_configs({resource: [ConfigChange("max.message.bytes", "10000")]})
    assert clusters.counts() == {"orders": (2, 0, 0)}
    assert len(clusters.copied(partitions=1)) == 2
