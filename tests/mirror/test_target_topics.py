"""The topics of the target: created as those of the source, and grown with them."""

from __future__ import annotations

import pytest

from barnabas.client.admin import (
    Admin,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicMetadata,
    result,
    results,
)
from tests.mirror.two_clusters import TwoClusters

pytestmark = pytest.mark.slow


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


def test_a_target_with_fewer_partitions(orders: TwoClusters) -> None:
    orders.target.create_topic("orders", partitions=1)
    assert orders.refused() == (
        "error: topic orders has fewer partitions at the target (1) than at the source (2)"
        " (`barnabas topic alter orders -p 2` at the target adds them, or leave it out with --topics)"
    )
    with Admin(orders.addresses[1]) as admin:
        results(admin.create_partitions({"orders": 2}))
    assert orders.counts() == {"orders": (20, 0, 0)}
