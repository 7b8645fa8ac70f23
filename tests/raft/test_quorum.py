"""Arithmetic of majorities (Raft paper, sections 5.3 and 5.4)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.raft.quorum import (
    ElectionOutcome,
    commit_index,
    election_outcome,
    high_watermark,
    is_up_to_date,
    majority,
)


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)])
def test_majority(voters: int, needed: int) -> None:
    assert majority(voters) == needed


@pytest.mark.parametrize(
    ("ends", "committed"),
    [([5], 5), ([5, 3], 3), ([5, 3, 4], 4), ([9, 1, 1], 1), ([9, 9, 1], 9), ([4, 3, 2, 1], 2), ([5, 4, 3, 2, 1], 3)],
)
def test_commit_index_is_what_a_majority_holds(ends: list[int], committed: int) -> None:
    assert commit_index(ends) == committed


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(-1, 100), min_size=1, max_size=7))
def test_commit_index_by_counting(ends: list[int]) -> None:
    index = commit_index(ends)
    assert sum(end >= index for end in ends) >= majority(len(ends))
    assert sum(end > index for end in ends) < majority(len(ends))


def test_high_watermark_waits_for_the_epoch_and_never_goes_back() -> None:
    # An old entry on a majority may still be overwritten until one of this epoch is on a majority too.
    assert high_watermark([10, 10, 3], epoch_start_offset=10, current=4) == 4
    assert high_watermark([11, 11, 3], epoch_start_offset=10, current=4) == 11
    assert high_watermark([11, 3, 3], epoch_start_offset=2, current=8) == 8


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        ({1: True}, ElectionOutcome.WON),
        ({1: True, 2: None, 3: None}, ElectionOutcome.PENDING),
        ({1: True, 2: True, 3: None}, ElectionOutcome.WON),
        ({1: True, 2: False, 3: None}, ElectionOutcome.PENDING),
        ({1: True, 2: False, 3: False}, ElectionOutcome.LOST),
        ({1: True, 2: False}, ElectionOutcome.LOST),
        ({1: True, 2: True, 3: False, 4: False}, ElectionOutcome.LOST),
    ],
)
def test_election_outcome(votes: dict[int, bool | None], outcome: ElectionOutcome) -> None:
    assert election_outcome(votes) is outcome


def test_a_log_is_up_to_date_by_epoch_then_length() -> None:
    assert is_up_to_date(3, 1, 2, 100)
    assert is_up_to_date(2, 100, 2, 100)
    assert not is_up_to_date(2, 99, 2, 100)
    assert not is_up_to_date(1, 1000, 2, 1)
