"""Which replicas a key names."""

from __future__ import annotations

from barnabas.raft.replica_key import ReplicaKey
from tests.raft.member_of_three import ONE, TWO


def test_a_new_directory_is_another_replica() -> None:
    assert ONE.names(ONE)
    assert not ONE.names(TWO)
    assert not ONE.names(ReplicaKey(1, b"n" * 16))


def test_a_key_without_a_directory_names_every_replica_of_its_node() -> None:
    assert ReplicaKey(1).names(ONE)
    assert not ReplicaKey(1).names(TWO)


def test_a_replica_that_does_not_tell_its_directory_may_be_another() -> None:
    assert not ONE.names(ReplicaKey(1))
