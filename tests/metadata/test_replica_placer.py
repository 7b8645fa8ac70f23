"""Placement of replicas: spread leaders, spread racks, fenced brokers last."""

from __future__ import annotations

import random
from collections import Counter

from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.replica_placer import place
from barnabas.protocol.errors import ErrorCode


def broker(node_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(node_id, 0, bytes(16), (), {}, rack, fenced, False, ())


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placement = place([broker(i) for i in range(4)], 40, 3, random.Random(1))
    assert placement.error is None
    assert Counter(replicas[0] for replicas in placement.assignments) == dict.fromkeys(range(4), 10)
    assert Counter(r for replicas in placement.assignments for r in replicas) == dict.fromkeys(range(4), 30)
    assert all(len(set(replicas)) == 3 for replicas in placement.assignments)


def test_replicas_of_a_partition_are_in_different_racks() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    placement = place([broker(i, rack) for i, rack in racks.items()], 30, 3, random.Random(2))
    assert all({racks[r] for r in replicas} == {"a", "b", "c"} for replicas in placement.assignments)


def test_a_fenced_broker_follows_but_is_not_preferred() -> None:
    placement = place([broker(1), broker(2, fenced=True)], 4, 2, random.Random(3))
    assert placement.assignments == [(1, 2)] * 4


def test_too_few_brokers_and_none_alive() -> None:
    error = place([broker(1)], 1, 2, random.Random(4)).error
    assert error is not None
    assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s) are registered" in (error.message or "")
    error = place([broker(1, fenced=True)], 1, 1, random.Random(4)).error
    assert error is not None
    assert "fenced" in (error.message or "")


def test_the_same_seed_places_alike() -> None:
    brokers = [broker(i, str(i % 2)) for i in range(5)]
    assert place(brokers, 9, 3, random.Random(5)) == place(brokers, 9, 3, random.Random(5))
