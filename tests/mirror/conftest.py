"""Two empty brokers, whose groups and transactions begin at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.embedded.broker import Broker
from tests.mirror.two_clusters import SETTINGS, TwoClusters, fill


@pytest.fixture(scope="session")
def two_brokers() -> Iterator[tuple[Broker, Broker]]:
    with Broker(config=SETTINGS) as source, Broker(config=SETTINGS) as target:
        yield source, target


@pytest.fixture
def clusters(two_brokers: tuple[Broker, Broker]) -> TwoClusters:
    for each in two_brokers:
        each.reset()
    return TwoClusters(*two_brokers)


@pytest.fixture
def orders(clusters: TwoClusters) -> TwoClusters:
    """A topic with two partitions and twenty records, at the source."""
    clusters.source.create_topic("orders", partitions=2)
    fill(clusters.addresses[0], "orders", range(20))
    return clusters
