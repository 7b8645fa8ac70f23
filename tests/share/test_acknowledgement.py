"""Acknowledging, releasing and expiring; and a long random life held against a model."""

from __future__ import annotations

import random

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.acknowledgement import Acknowledgement, acknowledge, expire, release, settle
from barnabas.share.in_flight import RecordState
from barnabas.share.window import ShareWindow
from tests.share.windows import ACCEPT, ACK, REJECT, RELEASE, RENEW, A, Window, X, limits


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


def test_a_range_may_have_a_type_for_each_offset() -> None:
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


def test_a_record_is_archived_after_its_last_delivery() -> None:
    window = Window(deliveries=2)
    for count in (1, 2):
        assert window.acquire(to=9) == [(0, 9, count)]
        window.acknowledge(0, 9, RELEASE)
    assert window.records.start_offset == 10
    assert window.acquire(to=9) == []


@pytest.mark.parametrize(("first", "last"), [(0, 9), (5, 12), (29, 29)])
def test_only_the_owner_may_acknowledge(first: int, last: int) -> None:
    window = Window()
    window.acquire("owner")
    with pytest.raises(KafkaError) as raised:
        window.acknowledge(first, last, ACCEPT, member="thief")
    assert raised.value.code is ErrorCode.INVALID_RECORD_STATE
    assert all(state is RecordState.ACQUIRED for _, _, state, _ in window.states())


def test_a_request_is_applied_completely_or_not_at_all() -> None:
    window = Window()
    window.acquire()
    window.acknowledge(5, 5, RELEASE)
    before = window.states()
    with pytest.raises(KafkaError):
        acknowledge(
            window.records, "m", [Acknowledgement(10, 19, (ACCEPT,)), Acknowledgement(0, 9, (ACCEPT,))], window.limits
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
    window.records = ShareWindow(5)
    window.acquire(start=10)
    if last < 5:
        assert window.acknowledge(first, last, ACCEPT) == [], "below the start: too late, and no error"
        return
    with pytest.raises(KafkaError) as raised:
        window.acknowledge(first, last, ACCEPT)
    assert raised.value.code is code


def test_records_in_transition_can_be_neither_acquired_nor_acknowledged() -> None:
    window = Window()
    window.acquire(to=9)
    changes = acknowledge(window.records, "m", [Acknowledgement(0, 9, (RELEASE,))], window.limits)
    assert window.acquire(to=9) == [], "the release is not written yet"
    with pytest.raises(KafkaError):
        window.acknowledge(0, 9, ACCEPT)
    settle(window.records, changes, committed=True, now=0.0)
    assert window.acquire(to=9) == [(0, 9, 2)]


def test_a_failed_write_gives_the_records_back_to_their_owner() -> None:
    window = Window()
    window.acquire(to=9)
    changes = acknowledge(window.records, "m", [Acknowledgement(0, 4, (ACCEPT,))], window.limits)
    settle(window.records, changes, committed=False, now=1.0)
    assert window.records.start_offset == 0
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.start_offset == 10


def test_a_failed_write_after_the_lock_has_expired_makes_the_records_available() -> None:
    window = Window()
    window.acquire(to=9)
    changes = acknowledge(window.records, "m", [Acknowledgement(0, 9, (ACCEPT,))], window.limits)
    assert expire(window.records, 31.0, window.limits) == [], "what is being written does not expire"
    settle(window.records, changes, committed=False, now=31.0)
    assert window.acquire("n", to=9) == [(0, 9, 2)]


def test_an_expired_lock_makes_its_records_available() -> None:
    window = Window()
    window.acquire(to=9)
    assert expire(window.records, 29.9, window.limits) == []
    changes = expire(window.records, 30.0, window.limits)
    assert [(c.first, c.last, c.state, c.delivery_count) for c in changes] == [(0, 9, A, 1)]
    assert window.records.earliest_lock is None
    with pytest.raises(KafkaError):
        window.acknowledge(0, 9, ACCEPT)


def test_a_renewed_lock_lasts_longer_and_changes_nothing_else() -> None:
    window = Window()
    window.acquire(to=9)
    window.limits = limits(until=50.0)
    assert window.acknowledge(2, 4, RENEW) == []
    changes = expire(window.records, 30.0, window.limits)
    assert [(c.first, c.last) for c in changes] == [(0, 1), (5, 9)]
    assert window.records.earliest_lock == 50.0
    window.limits = limits(renew_enabled=False)
    with pytest.raises(KafkaError, match="not enabled"):
        window.acknowledge(2, 4, RENEW)


def test_a_release_returns_all_records_of_the_member() -> None:
    window = Window()
    window.acquire("a", to=9)
    window.acquire("b", to=19)
    window.acknowledge(0, 3, ACCEPT, member="a")
    changes = release(window.records, "a", window.limits)
    settle(window.records, changes, committed=True, now=0.0)
    assert [(c.first, c.last, c.state) for c in changes] == [(4, 9, A)]
    assert window.acquire("c", to=19) == [(4, 9, 2)]


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


def test_an_exhausted_record_goes_to_a_dead_letter_topic_when_its_lock_expires() -> None:
    window = Window(deliveries=2)
    window.limits = limits(deliveries=2, dead_letters=True)
    window.acquire(to=0)
    window.acknowledge(0, 0, RELEASE)
    window.acquire(to=0)
    changes = expire(window.records, 30.0, window.limits)
    assert [(c.state, c.rejected, c.delivery_count) for c in changes] == [(RecordState.ARCHIVING, False, 2)]
    assert [(run.first, run.last) for run in window.records.archiving()] == [(0, 0)]


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
            changes = acknowledge(window.records, member, [Acknowledgement(first, last, types)], window.limits)
            committed = rng.random() < 0.8
            settle(window.records, changes, committed=committed, now=-1.0)
            if committed:
                for offset in range(first, last + 1):
                    chosen = types[0] if len(types) == 1 else types[offset - first]
                    if chosen == RELEASE:
                        model.give_back(offset, most)
                    else:
                        del model.owner[offset]
                        model.finished.add(offset)
        elif kind < 0.9:
            for change in expire(window.records, now, window.limits):
                for offset in range(change.first, change.last + 1):
                    model.give_back(offset, most)
            window.records.advance()
        elif kind < 0.95:
            changes = release(window.records, member, window.limits)
            settle(window.records, changes, committed=True, now=now)
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


def test_a_range_that_starts_below_the_start_offset_is_acknowledged_from_there() -> None:
    window = Window()
    window.acquire(to=19)
    window.acknowledge(0, 9, ACCEPT)
    assert window.records.start_offset == 10
    changes = window.acknowledge(5, 12, ACCEPT)
    assert [(change.first, change.last) for change in changes] == [(10, 12)]
    assert window.records.start_offset == 13
    assert window.acknowledge(0, 12, ACCEPT) == [], "a range below the start offset is finished already"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [(30, 31, "The first offset in request"), (29, 30, "The last offset in request")],
)
def test_a_range_beyond_the_acquired_records_is_rejected_with_its_reason(first: int, last: int, words: str) -> None:
    window = Window()
    window.acquire(to=29)
    with pytest.raises(KafkaError, match=words):
        window.acknowledge(first, last, ACCEPT)


def test_a_lock_that_another_member_holds_is_not_released() -> None:
    window = Window()
    window.acquire("a", to=9)
    window.acquire("b", to=19)
    changes = release(window.records, "a", window.limits)
    assert [(change.first, change.last, change.state) for change in changes] == [(0, 9, A)]
    assert release(window.records, "a", window.limits) == [], "what is being released is not released twice"


def test_records_below_the_start_offset_are_archived_when_their_lock_ends() -> None:
    for expires in (False, True):
        window = Window()
        window.acquire(to=9)
        window.records.move_start(4)
        if expires:
            changes = expire(window.records, 30.0, window.limits)
        else:
            changes = release(window.records, "m", window.limits)
        assert [(change.first, change.last, change.state) for change in changes] == [(0, 3, X), (4, 9, A)]


def test_records_in_transition_are_rejected_with_their_own_reason() -> None:
    window = Window()
    window.acquire(to=9)
    acknowledge(window.records, "m", [Acknowledgement(0, 4, (ACCEPT,))], window.limits)
    with pytest.raises(KafkaError, match="could not be completed"):
        window.acknowledge(0, 4, ACCEPT)
    window.acknowledge(5, 9, RELEASE)
    with pytest.raises(KafkaError, match="not in the acquired state"):
        window.acknowledge(5, 9, ACCEPT)
