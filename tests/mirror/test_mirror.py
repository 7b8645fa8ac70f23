"""A mirror between two brokers."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType
from tests.mirror.two_clusters import TwoClusters, fill, without_offsets


@pytest.mark.slow
def test_records_are_copied_once_as_they_are(clusters: TwoClusters) -> None:
    clusters.source.create_topic("orders", partitions=2)
    fill(clusters.addresses[0], "orders", range(20))
    assert clusters.counts() == {"orders": (20, 0, 0)}
    assert without_offsets(clusters.copied()) == without_offsets(clusters.original())
    assert clusters.counts() == {"orders": (0, 0, 0)}
    fill(clusters.addresses[0], "orders", range(20, 30))
    assert clusters.counts() == {"orders": (10, 0, 0)}
    assert without_offsets(clusters.copied()) == without_offsets(clusters.original())
