"""Which records a member acquires, how many, and in what parts."""

from __future__ import annotations

from barnabas.share.acquisition import Reading, acquire
from barnabas.share.in_flight import RecordState
from barnabas.share.window import Acquired
from tests.share.windows import ACCEPT, RELEASE, A, Window, X, restored


def test_a_first_fetch_acquires_whole_batches() -> None:
    window = Window()
    assert window.acquire() == [(0, 9, 1), (10, 19, 1), (20, 29, 1)]
    assert window.records.next_fetch_offset() == 30
    assert window.records.size == 30
    assert window.records.earliest_lock == 30.0


def test_small_record_batches_become_one_range_up_to_the_batch_size() -> None:
    window = Window()
    assert window.acquire(to=9, size=2, batch_size=5) == [(0, 5, 1), (6, 9, 1)]


def test_max_records_is_rounded_up_to_a_whole_record_batch() -> None:
    window = Window()
    assert window.acquire(most=12, batch_size=100) == [(0, 19, 1)]
    assert window.records.next_fetch_offset() == 20


def test_record_limit_acquires_no_more_than_max_records() -> None:
    window = Window()
    assert window.acquire(most=4, strict=True) == [(0, 3, 1)]
    assert window.states() == [(0, 3, RecordState.ACQUIRED, 1), (4, 9, A, 0)]
    assert window.records.next_fetch_offset() == 4
    assert window.acquire("other", most=4, strict=True) == [(4, 7, 1)]


def test_a_batch_that_fails_often_is_acquired_in_halves_and_at_last_one_by_one() -> None:
    window = Window(deliveries=5)
    sizes = []
    for _ in range(5):
        acquired = window.acquire(to=9)
        sizes.append(sum(last - first + 1 for first, last, _ in acquired))
        for first, last, _ in acquired:
            window.acknowledge(first, last, RELEASE)
    assert sizes[:3] == [10, 10, 10]
    assert sizes[3] == 5, "from half of the limit on: half a batch"
    assert sizes[4] == 1, "a record's last delivery is its own"


def test_the_window_does_not_grow_beyond_its_limit() -> None:
    window = Window(locks=20)
    assert window.acquire() == [(0, 9, 1), (10, 19, 1)]
    assert not window.records.can_acquire(20)
    assert window.acquire() == []
    window.acknowledge(5, 9, RELEASE)
    assert window.records.can_acquire(20)
    assert window.acquire() == [(5, 9, 2)], "what is in the window may be delivered again"


def test_records_that_compaction_removed_are_finished() -> None:
    window = Window()
    window.acquire(to=29)
    window.acknowledge(0, 19, RELEASE)
    acquired = acquire(window.records, Reading("m", [(15, 19)], 0, 10, False, window.limits), 500)
    assert acquired == [Acquired(15, 19, 2)]
    assert [(first, last) for first, last, state, _ in window.states() if state is X] == [(10, 14)]
    assert window.records.start_offset == 15


def test_a_full_window_moves_on_when_compaction_removed_all_its_records() -> None:
    window = Window(locks=20)
    window.acquire(to=19)
    window.acknowledge(0, 19, RELEASE)
    acquired = acquire(window.records, Reading("m", [(30, 39)], 0, 10, False, window.limits), 500)
    assert acquired == [Acquired(30, 39, 1)]


def test_a_full_window_gives_nothing_beyond_it_when_compaction_removed_its_last_records() -> None:
    window = Window(locks=20)
    window.acquire(to=19)
    window.acknowledge(10, 19, RELEASE)
    beyond = Reading("m", [(30, 39)], 10, 10, False, window.limits)
    assert acquire(window.records, beyond, 500) == []
    assert not window.records.can_acquire(20)
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.next_fetch_offset() == 20
    assert acquire(window.records, beyond._replace(fetch_offset=20), 500) == [Acquired(30, 39, 1)]


def test_records_that_another_member_has_acquired_meanwhile_are_not_acquired() -> None:
    window = Window()
    window.acquire("first", to=29)
    assert window.acquire("second", to=29, start=0) == []
    assert window.acquire("second", to=9, start=5) == []


def test_a_record_batch_that_is_partly_finished_is_acquired_from_the_start_offset() -> None:
    window = Window()
    window.acquire(to=9, most=5, strict=True)
    window.acknowledge(0, 4, ACCEPT)
    assert window.acquire(to=19) == [(5, 9, 1), (10, 19, 1)]


def test_a_new_window_starts_at_the_first_record_that_the_log_has() -> None:
    window = Window()
    acquired = acquire(window.records, Reading("m", [(5, 9)], 0, 10, False, window.limits), 500)
    assert acquired == [Acquired(5, 9, 1)]
    assert (window.records.start_offset, window.records.end_offset) == (5, 9)


def test_a_log_start_within_a_record_batch_is_where_a_member_begins() -> None:
    window = Window(15)
    window.acquire(to=24, most=5, strict=True)
    window.acknowledge(15, 19, RELEASE)
    window.records.move_start(23)
    read = Reading("m", [(20, 29)], 23, 10, False, window.limits)
    assert acquire(window.records, read, 500) == [Acquired(23, 29, 1)]


def test_a_gap_before_the_start_offset_is_not_acquired() -> None:
    window = restored(0, (0, 4, A, 1), (10, 14, A, 1))
    window.records.move_start(12)
    read = Reading("m", [(0, 9), (10, 19)], 12, 10, False, window.limits)
    assert acquire(window.records, read, 500) == [Acquired(12, 14, 2), Acquired(15, 19, 1)]


def test_records_below_the_start_offset_and_an_empty_request_acquire_nothing() -> None:
    window = Window(20)
    assert acquire(window.records, Reading("m", [(0, 9)], 0, 10, False, window.limits), 500) == []
    assert acquire(window.records, Reading("m", [], 20, 10, False, window.limits), 500) == []
    assert window.acquire(to=29, most=0) == []
    assert window.states() == []
