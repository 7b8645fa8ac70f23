"""When a partition may be fetched."""

from __future__ import annotations

from barnabas.replication.partition_fetch_state import FetchStage, PartitionFetchState
from tests.replication.following import Node, registration
from tests.replication.hosting import topic_id


def test_a_state_belongs_to_one_leader_epoch() -> None:
    node = Node(2)
    state = PartitionFetchState(node.lead(registration(1, 4)))
    assert (state.key, state.leader_epoch, state.is_current) == ((topic_id(1), 0), 4, True)
    node.lead(registration(2, 5))
    assert not state.is_current


def test_a_deleted_replica_is_followed_no_longer() -> None:
    node = Node(2)
    partition = node.lead(registration(1, 4))
    state = PartitionFetchState(partition)
    partition.is_deleted = True
    assert not state.is_current


def test_it_is_fetched_when_its_log_is_ready_and_no_delay_is_open() -> None:
    state = PartitionFetchState(Node(2).lead(registration(1, 4)))
    assert repr(state) == "<PartitionFetchState partition=orders-0 epoch=4 stage='truncating' delayed=False>"
    assert not state.is_fetching
    state.stage = FetchStage.FETCHING
    assert state.is_fetching
    state.delayed_until_ms = 7
    assert not state.is_fetching
