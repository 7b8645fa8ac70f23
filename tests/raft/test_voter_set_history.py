"""Voter sets by the offset of their record."""

from __future__ import annotations

import pytest

from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet


def voters(offset: int, *ids: int, kraft_version: int = 1) -> VotersFrom:
    return VotersFrom(offset, VoterSet.of(Voter(voter, bytes([voter]) * 16) for voter in ids), kraft_version)


STATIC, THREE, FOUR = voters(-1, 1, kraft_version=0), voters(5, 1, 2, 3), voters(9, 1, 2, 3, 4)


def history() -> VoterSetHistory:
    made = VoterSetHistory(STATIC)
    made.add(THREE)
    made.add(FOUR)
    return made


@pytest.mark.parametrize(
    ("offset", "expected"), [(-1, STATIC), (4, STATIC), (5, THREE), (8, THREE), (9, FOUR), (99, FOUR)]
)
def test_voters_count_from_their_record_on(offset: int, expected: VotersFrom) -> None:
    assert history().at(offset) == expected


def test_before_the_first_entry_that_one_counts() -> None:
    assert VoterSetHistory(THREE).at(2) == THREE


@pytest.mark.parametrize(("end_offset", "last"), [(10, FOUR), (9, THREE), (6, THREE), (5, STATIC), (0, STATIC)])
def test_a_truncation_takes_voters_back(end_offset: int, last: VotersFrom) -> None:
    made = history()
    made.truncate(end_offset)
    assert made.last == last


def test_the_first_entry_survives_every_truncation() -> None:
    made = VoterSetHistory(THREE)
    made.truncate(0)
    assert made.last == THREE


def test_offsets_rise() -> None:
    with pytest.raises(AssertionError, match=r"<VoterSetHistory offsets=\[-1, 5, 9\]> goes back to 9"):
        history().add(FOUR)


def test_only_voters_that_the_log_lacks_are_to_write() -> None:
    assert VoterSetHistory(voters(-1, 1)).is_to_write
    assert not VoterSetHistory(STATIC).is_to_write
    assert not history().is_to_write


def test_a_snapshot_replaces_the_voters_or_leaves_those_of_the_configuration() -> None:
    made = history()
    made.begin_at(20, FOUR.voters)
    assert (made.last, made.at(0)) == (VotersFrom(19, FOUR.voters), made.last)
    made = history()
    made.begin_at(20, None)
    assert made.last == STATIC
