"""Since when records are unread, from offsets alone."""

from __future__ import annotations

from barnabas.spark.source.unread_since import UnreadSince


def test_a_query_that_keeps_up():
    partition = UnreadSince()
    assert [partition.observe(end, end, end) for end in (0, 5, 9)] == [None, None, None]


def test_the_oldest_unread_record_was_there_when_an_end_beyond_it_was_seen():
    partition = UnreadSince()
    assert partition.observe(0, 10, 100.0) == 100.0
    assert partition.observe(5, 30, 101.0) == 100.0
    assert partition.observe(9, 30, 102.0) == 100.0
    assert partition.observe(10, 40, 103.0) == 101.0
    assert partition.observe(35, 40, 104.0) == 103.0
    assert partition.observe(40, 40, 105.0) is None
    assert partition.observe(40, 41, 106.0) == 106.0


def test_a_log_that_was_cut_forgets_the_ends_beyond_it():
    partition = UnreadSince()
    partition.observe(0, 10, 100.0)
    assert partition.observe(3, 5, 101.0) == 101.0


def test_memory_is_bounded_and_the_oldest_stays():
    partition = UnreadSince()
    for end in range(1, 5_000):
        assert partition.observe(0, end, float(end)) == 1.0
    assert int(repr(partition).partition("=")[2][:-1]) <= 512
    late = partition.observe(2_500, 5_000, 5_000.0)
    assert late is not None
    assert 2_501 <= late < 3_000
