"""Which role may follow which (KIP-595, KIP-996)."""

from __future__ import annotations

import itertools

from barnabas.raft.roles import Role, may_become


def moves(*, raises_epoch: bool, is_voter: bool) -> set[tuple[Role, Role]]:
    return {
        (one, two)
        for one, two in itertools.product(Role, Role)
        if may_become(one, two, raises_epoch=raises_epoch, is_voter=is_voter)
    }


def test_leadership_is_won_by_a_candidate_only_and_within_its_epoch() -> None:
    assert {one for one, two in moves(raises_epoch=False, is_voter=True) if two is Role.LEADER} == {Role.CANDIDATE}
    assert not {one for one, two in moves(raises_epoch=True, is_voter=True) if two is Role.LEADER}


def test_a_candidate_was_prospective_and_raised_the_epoch() -> None:
    assert not {one for one, two in moves(raises_epoch=False, is_voter=True) if two is Role.CANDIDATE}
    assert {one for one, two in moves(raises_epoch=True, is_voter=True) if two is Role.CANDIDATE} == {Role.PROSPECTIVE}


def test_every_role_hears_of_a_higher_epoch() -> None:
    higher = moves(raises_epoch=True, is_voter=True)
    assert all((role, Role.UNATTACHED) in higher and (role, Role.FOLLOWER) in higher for role in Role)


def test_a_leader_does_not_follow_within_its_own_epoch() -> None:
    assert (Role.LEADER, Role.FOLLOWER) not in moves(raises_epoch=False, is_voter=True)


def test_an_observer_is_unattached_or_follower() -> None:
    for raises in (False, True):
        assert {two for _, two in moves(raises_epoch=raises, is_voter=False)} <= {
            Role.UNATTACHED,
            Role.FOLLOWER,
            Role.RESIGNED,
        }
