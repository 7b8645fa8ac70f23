"""Whom the high watermark waits for, who may join the ISR, and who must leave it."""

from __future__ import annotations

import pytest

from barnabas.replication.followers import Followers


class Brokers:
    """Brokers 2 to 4 with epochs 20 to 40, and a clock."""

    lag_time_max_ms = 1000

    def __init__(self) -> None:
        self.now_ms = 0
        self.out_of_service: set[int] = set()

    def monotonic_ms(self) -> int:
        return self.now_ms

    def broker_epoch(self, broker_id: int) -> int:
        return 10 * broker_id

    def is_in_service(self, broker_id: int) -> bool:
        return broker_id not in self.out_of_service


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def fetched(followers: Followers, replica_id: int, offset: int, end: int = 9, epoch: int | None = None) -> None:
    followers.fetched(replica_id, offset, 0, 10 * replica_id if epoch is None else epoch, end)


def test_the_smallest_end_of_the_maximal_isr(brokers: Brokers) -> None:
    followers = Followers(brokers, (2, 3, 4), isr=(1, 2, 3))
    assert followers.smallest_end(9, (1, 2, 3)) == -1, "nobody has fetched yet"
    for replica_id, offset in ((2, 8), (3, 7), (4, 1)):
        fetched(followers, replica_id, offset)
    assert repr(followers) == "<Followers 2=8 3=7 4=1>"
    brokers.now_ms = 2000
    assert [followers.smallest_end(9, isr) for isr in ((1, 2, 3), (1, 2), (1,), (1, 4))] == [7, 8, 9, 1]


def test_one_that_is_caught_up_and_may_join_counts_too(brokers: Brokers) -> None:
    followers = Followers(brokers, (2,), isr=(1,))
    fetched(followers, 2, 9)
    assert followers.smallest_end(12, (1,)) == 9
    brokers.out_of_service.add(2)
    assert followers.smallest_end(12, (1,)) == 12
    brokers.out_of_service.clear()
    fetched(followers, 2, 9, epoch=19)
    assert followers.smallest_end(12, (1,)) == 12, "that incarnation is gone"
    fetched(followers, 2, 9, epoch=-1)
    assert followers.smallest_end(12, (1,)) == 9
    brokers.now_ms = 1001
    assert followers.smallest_end(12, (1,)) == 12, "it lags for too long"


def test_who_may_join(brokers: Brokers) -> None:
    followers = Followers(brokers, (2, 3), isr=(1,))
    assert not followers.may_join(2, 0)
    fetched(followers, 2, 5)
    assert [followers.may_join(2, offset) for offset in (5, 6)] == [True, False]
    assert not followers.may_join(7, 0)
    fetched(followers, 3, 5, epoch=29)
    assert not followers.may_join(3, 5)
    brokers.out_of_service.add(2)
    assert not followers.may_join(2, 5)


def test_who_must_leave(brokers: Brokers) -> None:
    followers = Followers(brokers, (2, 3, 4), isr=(1, 2, 3))
    fetched(followers, 2, 9)
    brokers.now_ms = 1000
    assert followers.late((1, 2, 3), 12) == []
    brokers.now_ms = 1001
    assert followers.late((1, 2, 3), 12) == [2, 3]
    assert followers.late((1, 2, 3), 9) == [3], "the other one has all there is"


def test_an_append_after_a_long_silence_makes_nobody_late(brokers: Brokers) -> None:
    followers = Followers(brokers, (2,), isr=(1, 2))
    fetched(followers, 2, 9)
    brokers.now_ms = 600_000
    followers.leader_appended(9)
    assert followers.late((1, 2), 10) == []
    brokers.now_ms += 1001
    assert followers.late((1, 2), 10) == [2]


def test_another_assignment_keeps_what_is_known(brokers: Brokers) -> None:
    before = Followers(brokers, (2, 3), isr=(1, 2))
    fetched(before, 2, 9)
    after = Followers(brokers, (2, 4), isr=(1, 2), known=before)
    assert ([each in after for each in (2, 3, 4)], repr(after)) == ([True, False, True], "<Followers 2=9 4=-1>")
    assert after.broker_epochs() == {2: 20}
