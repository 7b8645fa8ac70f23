"""Which replica a leader names to a consumer in a rack."""

from __future__ import annotations

import pytest

from barnabas.metadata.cluster_image import BrokerRegistration, Endpoint
from barnabas.replication.replica_selector import replica_in_rack
from tests.replication.brokers import Cluster
from tests.replication.following import Node, registration


def broker(node_id: int, rack: str | None, *, fenced: bool = False, listener: str = "EXTERNAL") -> BrokerRegistration:
    endpoints = (Endpoint(listener, "localhost", 9092, 0),)
    return BrokerRegistration(node_id, 100 + node_id, b"", endpoints, {}, rack, fenced, False, ())


BROKERS = {1: broker(1, "a"), 2: broker(2, "b"), 3: broker(3, "c"), 4: broker(4, "b")}


def leader() -> Node:
    """Broker 1 leads ten records, and has the replicas 2, 3 and 4."""
    node = Node(1)
    node.lead(registration(1, replicas=(1, 2, 3, 4)))
    for _ in range(10):
        node.append(b"a")
    for replica_id, end in ((2, 8), (3, 10), (4, 6)):
        node.replica().update_follower(replica_id, end, 2)
    return node


def named(node: Node, rack: str, offset: int = 5, **changed: BrokerRegistration) -> int:
    brokers = BROKERS | {int(key[1:]): value for key, value in changed.items()}
    return replica_in_rack(node.replica(), rack, offset, brokers, "EXTERNAL")


@pytest.mark.parametrize(("rack", "replica_id"), [("a", -1), ("b", 2), ("c", 3), ("d", -1)])
def test_a_replica_in_the_same_rack_is_named(rack: str, replica_id: int) -> None:
    assert named(leader(), rack) == replica_id


def test_the_one_with_the_most_records_is_named_and_of_equal_ones_the_last_that_was_caught_up() -> None:
    node = leader()
    node.replica().update_follower(4, 8, 2)
    assert named(node, "b") == 4, "both have 8, and neither was caught up since the beginning"
    node.now_ms = 50
    node.replica().update_follower(2, 10, 2)
    node.now_ms = 60
    node.replica().update_follower(4, 10, 2)
    assert named(node, "b") == 4
    node.now_ms = 70
    node.replica().update_follower(2, 10, 2)
    assert named(node, "b") == 2


@pytest.mark.parametrize(("offset", "replica_id"), [(1, -1), (2, 2), (8, 2), (9, -1)])
def test_it_has_the_offset(offset: int, replica_id: int) -> None:
    assert named(leader(), "b", offset) == replica_id


def test_it_is_in_service_and_can_be_reached() -> None:
    node = leader()
    assert named(node, "b", b2=broker(2, "b", fenced=True)) == 4
    assert named(node, "b", b2=broker(2, "b", listener="INTERNAL")) == 4
    node.lead(registration(1, replicas=(1, 2, 3, 4), isr=(1, 3, 4), partition_epoch=1))
    assert named(node, "b") == 4


def test_a_consumer_goes_to_the_replica_in_its_rack_and_reads_there() -> None:
    cluster = Cluster(racks=("a", "b", "c"))
    cluster.create_topic()
    cluster[1].produce(b"x", b"y")
    cluster.advance(1000)
    assert cluster[1].consume(rack="b").preferred_read_replica == -1, "no selector is configured"
    cluster[1].replicas.names_replicas_by_rack = True
    answer = cluster[1].consume(rack="b")
    assert (answer.preferred_read_replica, answer.records, answer.high_watermark) == (2, b"", 2)
    assert cluster[1].fetch(2, rack="b", wait_ms=1000).done(), "there is nothing to wait for"
    assert cluster[1].consume(rack="a").records
    assert cluster[1].consume(rack="").records
    assert cluster[1].consume(rack="b", version=10).records
    answer = cluster[2].consume(rack="b")
    assert (answer.preferred_read_replica, answer.high_watermark, len(answer.records or b"") > 0) == (-1, 2, True)
    cluster.close()


def test_a_consumer_that_waits_at_a_follower_gets_records_when_they_are_committed() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.advance(1000)
    waiting = cluster[2].fetch(wait_ms=2000)
    cluster.advance(100)
    cluster[1].produce(b"x")
    cluster.advance(10)
    assert not waiting.done(), "the follower does not know that it is committed"
    cluster.advance(510)
    assert waiting.result().responses[0].partitions[0].records
    cluster.close()
