"""Which votes an unattached node grants."""

from __future__ import annotations

import random

import pytest

from barnabas.clock import Clock
from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import Fetched, FetchFrom, bootstrap_ids
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.unattached import Unattached
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import VoterSet
from tests.raft.member_of_three import OBSERVER, THREE, TIMEOUTS, TWO
from tests.raft.memory_log import MemoryLog


@pytest.mark.parametrize("up_to_date", [True, False])
def test_the_first_candidate_whose_log_is_up_to_date_gets_the_vote(up_to_date: bool) -> None:
    assert Unattached(5, 0).grants(TWO, is_up_to_date=up_to_date, pre_vote=False) is up_to_date


def test_a_node_that_has_voted_grants_the_same_candidate_only() -> None:
    state = Unattached(5, 0, voted=TWO)
    assert state.grants(TWO, is_up_to_date=True, pre_vote=False)
    assert not state.grants(THREE, is_up_to_date=True, pre_vote=False)


def test_a_candidate_comes_too_late_once_a_leader_is_known() -> None:
    assert not Unattached(5, 0, leader_id=3).grants(TWO, is_up_to_date=True, pre_vote=False)


@pytest.mark.parametrize("up_to_date", [True, False])
def test_a_pre_vote_depends_on_the_log_alone(up_to_date: bool) -> None:
    for state in (Unattached(5, 0), Unattached(5, 0, voted=THREE), Unattached(5, 0, leader_id=3)):
        assert state.grants(TWO, is_up_to_date=up_to_date, pre_vote=True) is up_to_date


def test_the_vote_is_to_be_remembered() -> None:
    assert Unattached(5, 0, voted=TWO).election == ElectionState(5, -1, *TWO)


def test_a_node_without_voters_asks_bootstrap_servers_until_one_names_the_leader() -> None:
    clock = Clock(lambda: 0, lambda: 0)
    history = VoterSetHistory(VotersFrom(-1, VoterSet(()), kraft_version=0))
    ids = bootstrap_ids(2)
    node = RaftNode(OBSERVER, history, ElectionState(), MemoryLog(), clock, random.Random(1), TIMEOUTS, ids)
    (fetch,) = node.start().messages
    assert fetch.to in ids == (-2, -3)
    (again,) = node.answered(fetch.to, fetch.request, Fetched(4, 2, error=ErrorCode.FENCED_LEADER_EPOCH)).messages
    assert (again.to, again.request) == (2, FetchFrom(4, OBSERVER, 0, 0))
