"""The window of a share partition: acquiring, acknowledging, expiring, restoring, and a long random life held against a model."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.acquisition import Reading
from barnabas.share.in_flight import RecordState
from barnabas.share.records import Acknowledgement, Acquired, Change, Limits, ShareRecords

A, ACK, X = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def limits(*, deliveries: int = 5, locks: int = 2000, until: float = 30.0, **other: bool) -> Limits:
    return Limits(deliveries, locks, until, **other)


class Window:
    """A window over record batches of ten, unless told otherwise."""

    def __init__(self, start: int = 0, *, deliveries: int = 5, locks: int = 2000) -> None:
        self.records = ShareRecords(start)
        self.limits = limits(deliveries=deliveries, locks=locks)

    def acquire(
        self,
        member: str = "m",
        *,
        to: int = 29,
        most: int = 500,
        strict: bool = False,
        size: int = 10,
        batch_size: int = 10,
        start: int | None = None,
    ) -> list[tuple[int, int, int]]:
        """Read from where the window says, in record batches of `size`, and acquire."""
        offset = self.records.next_fetch_offset() if start is None else start
        first = offset // size * size
        batches = [(base, min(base + size - 1, to)) for base in range(first, to + 1, size)]
        read = Reading(member, batches, offset, batch_size, strict, self.limits)
        acquired = self.records.acquire(read, most)
        return [(part.first, part.last, part.delivery_count) for part in acquired]

    def acknowledge(self, first: int, last: int, *types: int, member: str = "m") -> list[Change]:
        changes = self.records.acknowledge(member, [Acknowledgement(first, last, types)], self.limits)
        self.records.settle(changes, committed=True, now=0.0)
        return changes

    def states(self) -> list[tuple[int, int, RecordState, int]]:
        return [
            (run.first, run.last, run.state, run.delivery_count) for batch in self.records.batches for run in batch.runs
        ]


def test_a_first_fetch_acquires_whole_batches() -> None:
    window = Window()
    assert window.acquire() == [(0, 9, 1), (10, 19, 1), (20, 29, 1)]
    assert window.records.next_fetch_offset() == 30
    assert window.records.size == 30
    assert window.records.earliest_lock == 30.0


def test_small_record_batches_are_put_together_up_to_the_batch_size() -> None:
    window = Window()
    assert window.acquire(to=9, size=2, batch_size=5) == [(0, 5, 1), (6, 9, 1)]


def test_max_records_is_rounded_up_to_a_whole_record_batch() -> None:
    window = Window()
    assert window.acquire(most=12, batch_size=100) == [(0, 19, 1)]
    assert window.records.next_fetch_offset() == 20


def test_record_limit_takes_no_more_than_asked_and_leaves_the_rest_for_the_next() -> None:
    window = Window()
    assert window.acquire(most=4, strict=True) == [(0, 3, 1)]
    assert window.states() == [(0, 3, RecordState.ACQUIRED, 1), (4, 9, A, 0)]
    assert window.records.next_fetch_offset() == 4
    assert window.acquire("other", most=4, strict=True) == [(4, 7, 1)]


def test_accepted_records_move_the_start_offset() -> None:
    window = Window()
    window.acquire()
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.start_offset == 10
    assert [batch.first for batch in window.records.batches] == [10, 20]


def test_a_gap_in_the_acknowledgements_holds_the_start_offset_back() -> None:
    window = Window()
    window.acquire()
    window.acknowledge(10, 29, ACCEPT)
    assert window.records.start_offset == 0
    assert window.records.delivery_complete_count == 20
    window.acknowledge(0, 9, REJECT)
    assert (window.records.start_offset, window.records.end_offset, window.records.batches) == (30, 30, [])
    assert window.records.delivery_complete_count == 0


def test_types_for_each_offset() -> None:
    window = Window()
    window.acquire(to=9)
    changes = window.acknowledge(0, 9, ACCEPT, ACCEPT, RELEASE, REJECT, 0, ACCEPT, RELEASE, RELEASE, ACCEPT, ACCEPT)
    assert [(c.first, c.last, c.state) for c in changes] == [
        (0, 1, ACK),
        (2, 2, A),
        (3, 3, X),
        (4, 4, X),
        (5, 5, ACK),
        (6, 7, A),
        (8, 9, ACK),
    ]
    assert window.records.start_offset == 2
    assert window.acquire(to=9) == [(2, 2, 2), (6, 7, 2)]


def test_released_records_are_read_again_before_new_ones() -> None:
    window = Window()
    window.acquire(to=19)
    window.acknowledge(10, 19, RELEASE)
    assert window.records.next_fetch_offset() == 10
    assert window.acquire(to=29) == [(10, 19, 2), (20, 29, 1)]


def test_a_record_is_archived_when_its_deliveries_are_used_up() -> None:
    window = Window(deliveries=2)
    for count in (1, 2):
        assert window.acquire(to=9) == [(0, 9, count)]
        window.acknowledge(0, 9, RELEASE)
    assert window.records.start_offset == 10
    assert window.acquire(to=9) == []


def test_a_batch_that_fails_often_is_given_out_in_halves_and_at_last_one_by_one() -> None:
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


@pytest.mark.parametrize(("first", "last"), [(0, 9), (5, 12), (29, 29)])
def test_only_the_owner_may_acknowledge(first: int, last: int) -> None:
    window = Window()
    window.acquire("owner")
    with pytest.raises(KafkaError) as raised:
        window.acknowledge(first, last, ACCEPT, member="thief")
    assert raised.value.code is ErrorCode.INVALID_RECORD_STATE
    assert all(state is RecordState.ACQUIRED for _, _, state, _ in window.states())


def test_a_request_is_taken_whole_or_not_at_all() -> None:
    window = Window()
    window.acquire()
    window.acknowledge(5, 5, RELEASE)
    before = window.states()
    with pytest.raises(KafkaError):
        window.records.acknowledge(
            "m", [Acknowledgement(10, 19, (ACCEPT,)), Acknowledgement(0, 9, (ACCEPT,))], window.limits
        )
    after = [(s, n) for first, last, s, n in window.states() for _ in range(first, last + 1)]
    assert after == [(s, n) for first, last, s, n in before for _ in range(first, last + 1)]
    window.acknowledge(10, 19, ACCEPT)


@pytest.mark.parametrize(
    ("first", "last", "code"),
    [
        (40, 49, ErrorCode.INVALID_REQUEST),
        (20, 39, ErrorCode.INVALID_REQUEST),
        (0, 4, ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_records_outside_the_window_cannot_be_acknowledged(first: int, last: int, code: ErrorCode) -> None:
    window = Window(start=5)
    window.records = ShareRecords(5)
    window.acquire(start=10)
    if last < 5:
        assert window.acknowledge(first, last, ACCEPT) == [], "below the start: too late, and no error"
        return
    with pytest.raises(KafkaError) as raised:
        window.acknowledge(first, last, ACCEPT)
    assert raised.value.code is code


def test_records_in_transition_are_nobodys() -> None:
    window = Window()
    window.acquire(to=9)
    changes = window.records.acknowledge("m", [Acknowledgement(0, 9, (RELEASE,))], window.limits)
    assert window.acquire(to=9) == [], "the release is not written yet"
    with pytest.raises(KafkaError):
        window.acknowledge(0, 9, ACCEPT)
    window.records.settle(changes, committed=True, now=0.0)
    assert window.acquire(to=9) == [(0, 9, 2)]


def test_a_failed_write_gives_the_records_back_to_their_owner() -> None:
    window = Window()
    window.acquire(to=9)
    changes = window.records.acknowledge("m", [Acknowledgement(0, 4, (ACCEPT,))], window.limits)
    window.records.settle(changes, committed=False, now=1.0)
    assert window.records.start_offset == 0
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.start_offset == 10


def test_a_failed_write_after_the_lock_has_run_out_makes_the_records_available() -> None:
    window = Window()
    window.acquire(to=9)
    changes = window.records.acknowledge("m", [Acknowledgement(0, 9, (ACCEPT,))], window.limits)
    assert window.records.expire(31.0, window.limits) == [], "what is being written does not expire"
    window.records.settle(changes, committed=False, now=31.0)
    assert window.acquire("n", to=9) == [(0, 9, 2)]


def test_locks_run_out() -> None:
    window = Window()
    window.acquire(to=9)
    assert window.records.expire(29.9, window.limits) == []
    changes = window.records.expire(30.0, window.limits)
    assert [(c.first, c.last, c.state, c.delivery_count) for c in changes] == [(0, 9, A, 1)]
    assert window.records.earliest_lock is None
    with pytest.raises(KafkaError):
        window.acknowledge(0, 9, ACCEPT)


def test_a_renewed_lock_lasts_longer_and_changes_nothing_else() -> None:
    window = Window()
    window.acquire(to=9)
    window.limits = limits(until=50.0)
    assert window.acknowledge(2, 4, RENEW) == []
    changes = window.records.expire(30.0, window.limits)
    assert [(c.first, c.last) for c in changes] == [(0, 1), (5, 9)]
    assert window.records.earliest_lock == 50.0
    window.limits = limits(renew_enabled=False)
    with pytest.raises(KafkaError, match="not enabled"):
        window.acknowledge(2, 4, RENEW)


def test_a_member_that_goes_gives_all_back() -> None:
    window = Window()
    window.acquire("a", to=9)
    window.acquire("b", to=19)
    window.acknowledge(0, 3, ACCEPT, member="a")
    changes = window.records.release("a", window.limits)
    window.records.settle(changes, committed=True, now=0.0)
    assert [(c.first, c.last, c.state) for c in changes] == [(4, 9, A)]
    assert window.acquire("c", to=19) == [(4, 9, 2)]


def test_the_window_does_not_grow_beyond_its_limit() -> None:
    window = Window(locks=20)
    assert window.acquire() == [(0, 9, 1), (10, 19, 1)]
    assert not window.records.can_acquire(20)
    assert window.acquire() == []
    window.acknowledge(5, 9, RELEASE)
    assert window.records.can_acquire(20)
    assert window.acquire() == [(5, 9, 2)], "what is in the window may be delivered again"


def test_a_rejected_record_goes_to_a_dead_letter_topic_first() -> None:
    window = Window()
    window.limits = limits(dead_letters=True)
    window.acquire(to=9)
    changes = window.acknowledge(0, 0, REJECT)
    assert [(c.state, c.rejected) for c in changes] == [(RecordState.ARCHIVING, True)]
    assert window.records.start_offset == 0, "it is not finished before the letter is written"
    window.records.finish_archiving(0, 0)
    window.records.advance()
    assert window.records.start_offset == 1


def test_an_exhausted_record_goes_there_too_when_its_lock_runs_out() -> None:
    window = Window(deliveries=2)
    window.limits = limits(deliveries=2, dead_letters=True)
    window.acquire(to=0)
    window.acknowledge(0, 0, RELEASE)
    window.acquire(to=0)
    changes = window.records.expire(30.0, window.limits)
    assert [(c.state, c.rejected, c.delivery_count) for c in changes] == [(RecordState.ARCHIVING, False, 2)]
    assert [(run.first, run.last) for run in window.records.archiving()] == [(0, 0)]


# -- the log -------------------------------------------------------------------------------------------------------------


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
    empty = ShareRecords(5)
    empty.move_start(7)
    assert (empty.start_offset, empty.end_offset, empty.next_fetch_offset()) == (7, 7, 7)
    empty.move_start(6)
    assert empty.start_offset == 7


def test_records_that_compaction_took_are_finished() -> None:
    window = Window()
    window.acquire(to=29)
    window.acknowledge(0, 19, RELEASE)
    acquired = window.records.acquire(Reading("m", [(15, 19)], 0, 10, False, window.limits), 500)
    assert acquired == [Acquired(15, 19, 2)]
    assert [(first, last) for first, last, state, _ in window.states() if state is X] == [(0, 9), (10, 14)]


# -- after a restart -----------------------------------------------------------------------------------------------------


def restored(start: int, *states: tuple[int, int, int, int]) -> Window:
    window = Window()
    window.records = ShareRecords.restored(start, states)
    return window


def test_nothing_persisted_begins_at_the_start_offset() -> None:
    window = restored(7)
    assert window.records.next_fetch_offset() == 7


def test_what_was_persisted_comes_back() -> None:
    window = restored(0, (0, 4, int(ACK), 1), (5, 9, int(A), 3), (10, 19, int(ACK), 1))
    assert window.records.start_offset == 5
    assert window.acquire(to=19) == [(5, 6, 4)], "a batch of five that failed three times of five: half of it"
    assert all(first >= 5 for first, _, _, _ in window.states())


def test_gaps_were_acquired_and_never_finished_and_are_delivered_again() -> None:
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


def test_a_gap_that_compaction_took_is_not_waited_for() -> None:
    window = restored(0, (10, 14, int(ACK), 1), (20, 24, int(ACK), 1))
    for batches, start in ([(10, 14)], 15), ([(25, 29)], 25):
        offset = window.records.next_fetch_offset()
        window.records.acquire(Reading("m", batches, offset, 10, False, window.limits), 500)
        assert window.records.start_offset == start
    window.acknowledge(25, 29, ACCEPT)
    assert (window.records.start_offset, window.records.batches) == (30, [])


@pytest.mark.parametrize("states", [[(3, 2, 0, 1)], [(0, 5, 0, 1), (4, 6, 0, 1)], [(-1, 5, 0, 1)]])
def test_states_that_are_no_window_are_refused(states: Sequence[tuple[int, int, int, int]]) -> None:
    with pytest.raises(ValueError, match="does not continue"):
        ShareRecords.restored(0, states)


# -- a long life ---------------------------------------------------------------------------------------------------------


class Model:
    """What has become of each offset, kept the plainest way."""

    def __init__(self) -> None:
        self.owner: dict[int, str] = {}
        self.deliveries: dict[int, int] = {}
        self.finished: set[int] = set()

    def deliver(self, member: str, acquired: list[tuple[int, int, int]]) -> None:
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                assert offset not in self.finished, f"{offset} was finished"
                assert offset not in self.owner, f"{offset} is with {self.owner[offset]}"
                self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
                assert self.deliveries[offset] == count, offset
                self.owner[offset] = member

    def give_back(self, offset: int, most: int) -> None:
        del self.owner[offset]
        if self.deliveries[offset] >= most:
            self.finished.add(offset)


@pytest.mark.parametrize("seed", range(40))
def test_every_record_is_finished_once_and_delivered_as_often_as_allowed(seed: int) -> None:
    rng = random.Random(seed)
    most, log_end, size = rng.choice((2, 3, 5)), 120, rng.choice((1, 3, 10))
    window = Window(deliveries=most, locks=rng.choice((100, 2000)))
    model, now = Model(), 0.0
    members = ["a", "b", "c"]
    for step in range(2000):
        start_before = window.records.start_offset
        member = rng.choice(members)
        now += 1.0
        window.limits = window.limits._replace(lock_until=now + rng.choice((3.0, 30.0)))
        kind = rng.random()
        held = sorted(offset for offset, owner in model.owner.items() if owner == member)
        if kind < 0.4:
            if window.records.can_acquire(window.limits.max_record_locks):
                offset = window.records.next_fetch_offset()
                if offset < log_end:
                    to = min(log_end - 1, (offset + rng.randint(1, 25)) // size * size + size - 1)
                    acquired = window.acquire(
                        member, to=to, most=rng.randint(1, 30), strict=rng.random() < 0.5, size=size
                    )
                    model.deliver(member, acquired)
        elif kind < 0.85 and held:
            first = rng.choice(held)
            last = first
            while last + 1 in held and rng.random() < 0.8:
                last += 1
            types = [rng.choice((ACCEPT, ACCEPT, RELEASE, REJECT)) for _ in range(rng.choice((1, last - first + 1)))]
            changes = window.records.acknowledge(member, [Acknowledgement(first, last, types)], window.limits)
            committed = rng.random() < 0.8
            window.records.settle(changes, committed=committed, now=-1.0)
            if committed:
                for offset in range(first, last + 1):
                    chosen = types[0] if len(types) == 1 else types[offset - first]
                    if chosen == RELEASE:
                        model.give_back(offset, most)
                    else:
                        del model.owner[offset]
                        model.finished.add(offset)
        elif kind < 0.9:
            for change in window.records.expire(now, window.limits):
                for offset in range(change.first, change.last + 1):
                    model.give_back(offset, most)
            window.records.advance()
        elif kind < 0.95:
            changes = window.records.release(member, window.limits)
            window.records.settle(changes, committed=True, now=now)
            for offset in held:
                model.give_back(offset, most)
        for batch in window.records.batches:
            covered = [offset for run in batch.runs for offset in range(run.first, run.last + 1)]
            assert covered == list(range(batch.first, batch.last + 1)), step
        assert window.records.start_offset >= start_before
        assert all(offset in model.finished for offset in range(window.records.start_offset))
        if len(model.finished) == log_end:
            break
    assert len(model.finished) == log_end, f"{sorted(set(range(log_end)) - model.finished)} left, {window.records}"
    window.records.advance()
    assert window.records.start_offset == log_end
    assert all(count <= most for count in model.deliveries.values())
