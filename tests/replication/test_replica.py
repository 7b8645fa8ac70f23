"""When a follower counts as caught up, from the fetches that it sends."""

from __future__ import annotations

import pytest

from barnabas.replication.replica import NEVER_MS, Replica

LAG_MS = 1000


def fetched(replica: Replica, offset: int, leader_end: int, now_ms: int, epoch: int = 7) -> None:
    replica.fetched(offset, 2, epoch, leader_end, now_ms)


def caught_up_until(replica: Replica, leader_end: int) -> int:
    """Return the last time at which it counts as caught up."""
    times = [now for now in range(10_000) if replica.is_caught_up(leader_end, now, LAG_MS)]
    return max(times, default=-1)


def test_a_follower_without_a_fetch() -> None:
    assert repr(Replica(2)) == "<Replica broker=2 log_end_offset=-1>"
    replica = Replica(2)
    assert (replica.log_start_offset, replica.log_end_offset, replica.broker_epoch) == (-1, -1, None)
    assert not replica.is_caught_up(0, NEVER_MS + LAG_MS + 1, LAG_MS)
    assert caught_up_until(replica, 0) == -1
    assert caught_up_until(Replica(2, caught_up_ms=500), 0) == 1500, "one in the ISR has time to fetch"


def test_a_fetch_says_what_the_follower_has() -> None:
    replica = Replica(2)
    fetched(replica, 5, 9, now_ms=100)
    assert (replica.log_start_offset, replica.log_end_offset, replica.broker_epoch) == (2, 5, 7)
    fetched(replica, 3, 9, now_ms=101, epoch=8)
    assert (replica.log_end_offset, replica.broker_epoch) == (3, 8), "it may have lost its last records"


def test_at_the_end_of_the_leaders_log_it_is_caught_up() -> None:
    replica = Replica(2)
    fetched(replica, 9, 9, now_ms=100)
    assert replica.is_caught_up(9, 1 << 40, LAG_MS), "as long as the leader appends nothing"
    assert caught_up_until(replica, 10) == 1100


def test_what_it_fetches_was_the_leaders_end_at_the_fetch_before() -> None:
    replica = Replica(2)
    fetched(replica, 5, 10, now_ms=100)
    assert caught_up_until(replica, 20) == -1
    fetched(replica, 10, 14, now_ms=200)
    assert caught_up_until(replica, 20) == 1100
    fetched(replica, 13, 20, now_ms=300)
    assert caught_up_until(replica, 20) == 1100, "at the second fetch the leader had 14"
    fetched(replica, 20, 21, now_ms=400)
    assert caught_up_until(replica, 30) == 1300


def test_an_earlier_offset_does_not_take_back_when_it_was_caught_up() -> None:
    replica = Replica(2, caught_up_ms=500)
    fetched(replica, 0, 10, now_ms=600)
    fetched(replica, 10, 11, now_ms=700)
    fetched(replica, 4, 11, now_ms=800)
    assert caught_up_until(replica, 11) == 1600
    fetched(replica, 11, 12, now_ms=100)
    assert caught_up_until(replica, 12) == 1800, "the fetch at 800 met the end 11"


@pytest.mark.parametrize(("end", "until"), [(9, 6000), (8, 1100)])
def test_an_append_proves_that_it_was_caught_up_until_then(end: int, until: int) -> None:
    """Nothing was appended for long, and the follower's session did not name the partition."""
    replica = Replica(2)
    fetched(replica, end, end, now_ms=100)
    replica.leader_appended(9, now_ms=5000)
    assert caught_up_until(replica, 10) == until
