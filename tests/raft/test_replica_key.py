"""When two names mean one replica."""

from __future__ import annotations

from barnabas.raft.replica_key import ReplicaKey
from tests.raft.member_of_three import ONE, TWO


def test_a_new_directory_is_another_replica() -> None:
    assert ONE.is_same(ONE)
    assert not ONE.is_same(TWO)
    assert not ONE.is_same(ReplicaKey(1, b"n" * 16))


def test_a_directory_that_is_not_named_agrees_with_each() -> None:
    assert ReplicaKey(1).is_same(ONE)
    assert not ReplicaKey(1).is_same(TWO)
