"""Which votes an unattached node grants."""

from __future__ import annotations

import pytest

from barnabas.raft.election_state import ElectionState
from barnabas.raft.unattached import Unattached
from tests.raft.member_of_three import THREE, TWO


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
