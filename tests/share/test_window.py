"""The window of a share partition: log starts that move, and what is restored after a restart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.share.acknowledgement import Acknowledgement, acknowledge, settle
from barnabas.share.acquisition import Reading, acquire
from barnabas.share.window import Acquired, ShareWindow
from tests.share.windows import ACCEPT, ACK, RELEASE, A, Window, X, limits, restored


def test_a_log_start_that_moves_archives_what_is_available() -> None:
    window = Window()
    window.acquire(to=29)
    window.acknowledge(0, 9, RELEASE)
    window.records.move_start(15)
    assert window.records.start_offset == 15
    assert window.acquire(to=29) == []
    window.acknowledge(15, 29, ACCEPT)
    assert window.records.start_offset == 30


def test_a_log_start_beyond_the_window() -> None:
    window = Window()
    window.acquire(to=9)
    window.acknowledge(0, 9, RELEASE)
    window.records.move_start(100)
    assert window.records.next_fetch_offset() == 100
    assert window.acquire(to=109) == [(100, 109, 1)]
    empty = ShareWindow(5)
    empty.move_start(7)
    assert (empty.start_offset, empty.end_offset, empty.next_fetch_offset()) == (7, 7, 7)
    empty.move_start(6)
    assert empty.start_offset == 7


def test_an_empty_state_starts_at_the_start_offset() -> None:
    window = restored(7)
    assert window.records.next_fetch_offset() == 7


def test_a_window_is_restored_from_its_state() -> None:
    window = restored(0, (0, 4, int(ACK), 1), (5, 9, int(A), 3), (10, 19, int(ACK), 1))
    assert window.records.start_offset == 5
    assert window.acquire(to=19) == [(5, 6, 4)], "a batch of five that failed three times of five: half of it"
    assert all(first >= 5 for first, _, _, _ in window.states())


def test_gaps_between_persisted_ranges_are_delivered_again() -> None:
    window = restored(0, (10, 14, int(ACK), 1), (20, 24, int(A), 1))
    assert window.records.start_offset == 0
    assert window.records.next_fetch_offset() == 0
    assert window.acquire(to=29) == [(0, 9, 1), (15, 19, 1), (20, 24, 2), (25, 29, 1)]
    for first, last in ((0, 9), (15, 24), (25, 29)):
        window.acknowledge(first, last, ACCEPT)
    assert (window.records.start_offset, window.records.batches) == (30, [])


def test_the_start_offset_waits_for_a_gap() -> None:
    window = restored(0, (10, 14, int(ACK), 1))
    assert window.records.start_offset == 0
    assert window.acquire(to=14) == [(0, 9, 1)]
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.start_offset == 15


@pytest.mark.parametrize(
    ("log_start", "offset", "acquired"),
    [
        (7, 7, [(7, 9, 1), (15, 19, 1), (20, 24, 2), (25, 29, 1)]),
        (12, 15, [(15, 19, 1), (20, 24, 2), (25, 29, 1)]),
        (17, 17, [(17, 19, 1), (20, 24, 2), (25, 29, 1)]),
        (22, 22, [(22, 24, 2), (25, 29, 1)]),
        (40, 40, []),
    ],
)
def test_a_gap_whose_records_are_deleted_is_not_read_again(
    log_start: int, offset: int, acquired: list[tuple[int, int, int]]
) -> None:
    window = restored(0, (10, 14, int(ACK), 1), (20, 24, int(A), 1))
    window.records.move_start(log_start)
    assert window.records.next_fetch_offset() == offset
    assert window.acquire(to=29) == acquired


def test_a_gap_that_compaction_removed_does_not_hold_the_start_offset() -> None:
    window = restored(0, (10, 14, int(ACK), 1), (20, 24, int(ACK), 1))
    for batches, start in ([(10, 14)], 15), ([(25, 29)], 25):
        offset = window.records.next_fetch_offset()
        acquire(window.records, Reading("m", batches, offset, 10, False, window.limits), 500)
        assert window.records.start_offset == start
    window.acknowledge(25, 29, ACCEPT)
    assert (window.records.start_offset, window.records.batches) == (30, [])


@pytest.mark.parametrize("states", [[(3, 2, 0, 1)], [(0, 5, 0, 1), (4, 6, 0, 1)], [(-1, 5, 0, 1)]])
def test_states_that_overlap_or_descend_are_rejected(states: Sequence[tuple[int, int, int, int]]) -> None:
    with pytest.raises(ValueError, match="does not continue"):
        ShareWindow.restored(0, states)


def test_the_earliest_lock_is_the_first_to_end() -> None:
    window = Window()
    assert window.records.earliest_lock is None
    window.limits = limits(until=50.0)
    window.acquire("slow", to=9)
    window.limits = limits(until=20.0)
    window.acquire("fast", to=19)
    window.limits = limits(until=40.0)
    window.acquire("middle", to=29)
    assert window.records.earliest_lock == 20.0


def test_a_gap_at_the_start_that_compaction_removed_moves_the_start_offset() -> None:
    window = restored(0, (5, 9, A, 1))
    acquired = acquire(window.records, Reading("m", [(5, 9)], 0, 10, False, window.limits), 500)
    assert [(part.first, part.last) for part in acquired] == [(5, 9)]
    assert window.records.start_offset == 5


def test_a_log_start_within_the_window_keeps_its_end() -> None:
    window = Window()
    window.acquire(to=29)
    window.acknowledge(0, 29, RELEASE)
    window.records.move_start(15)
    assert (window.records.start_offset, window.records.end_offset) == (15, 29)
    assert window.records.next_fetch_offset() == 15


def test_a_log_start_at_or_below_the_start_offset_changes_nothing() -> None:
    window = Window(5)
    window.acquire(to=29)
    before = window.states()
    for log_start in (4, 5):
        window.records.move_start(log_start)
        assert (window.records.start_offset, window.records.end_offset, window.states()) == (5, 29, before)


def test_records_below_a_moved_log_start_are_not_acquired_with_the_rest_of_their_batch() -> None:
    window = Window()
    window.acquire(to=29)
    window.acknowledge(0, 29, RELEASE)
    window.records.move_start(15)
    assert [run[:3] for run in window.states()][:2] == [(0, 9, X), (10, 14, X)]
    assert window.acquire(to=29) == [(15, 19, 2), (20, 29, 2)]


def test_sizes_count_both_ends() -> None:
    assert Acquired(5, 9, 1).size == 5
    window = Window(5)
    assert window.records.size == 0
    window.acquire(to=19)
    assert window.records.size == 15


def test_a_start_offset_that_moves_is_reported() -> None:
    window = Window()
    assert not window.records.advance()
    window.acquire(to=29)
    for first, last, moves in ((5, 9, False), (0, 2, True), (3, 4, True), (10, 29, True)):
        changes = acknowledge(window.records, "m", [Acknowledgement(first, last, (ACCEPT,))], window.limits)
        assert settle(window.records, changes, committed=True, now=0.0) is moves
    assert window.records.start_offset == 30


def test_the_last_record_of_a_window_is_not_read_again_while_a_member_holds_it() -> None:
    window = Window()
    window.acquire(to=9)
    window.acknowledge(0, 8, ACCEPT)
    assert window.records.start_offset == 9
    assert window.records.next_fetch_offset() == 10


def test_an_available_record_before_a_gap_is_read_first() -> None:
    assert restored(0, (0, 4, A, 1), (10, 14, A, 1)).records.next_fetch_offset() == 0
    assert restored(0, (0, 0, A, 1), (1, 4, ACK, 1), (10, 14, A, 1)).records.next_fetch_offset() == 0
