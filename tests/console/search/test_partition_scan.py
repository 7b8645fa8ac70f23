"""One partition, forwards and backwards, over gaps, damage, removal and failures."""

from __future__ import annotations

import random

import pytest

from barnabas.console.search.partition_scan import TopicIsGone
from barnabas.protocol.errors import ErrorCode, error_for
from tests.console.search.log_in_memory import MemoryLog, span_of, taken

BOTH_WAYS = pytest.mark.parametrize("newest_first", [False, True])


def drawn(dice: random.Random) -> tuple[MemoryLog, list[int]]:
    log, offset = MemoryLog(), 0
    offsets: list[int] = []
    for _ in range(dice.randrange(1, 40)):
        offset += dice.choice((0, 0, 0, 1, 30, 300))
        count = dice.choice((1, 2, 5, 120))
        log.add(offset, count, value=bytes(dice.choice((1, 20, 500))))
        offsets += range(offset, offset + count)
        offset += count
    return log, offsets


@BOTH_WAYS
def test_every_offset_comes_once_in_order(monkeypatch: pytest.MonkeyPatch, newest_first: bool) -> None:
    dice = random.Random(11)
    for _ in range(8):
        log, offsets = drawn(dice)
        begin = dice.choice((0, dice.randrange(log.end)))
        end = dice.choice((log.end, dice.randrange(begin, log.end + 1)))
        span = span_of(begin, end, newest_first=newest_first)
        scan = log.scan(monkeypatch, span, newest_first=newest_first, most_bytes=dice.choice((100, 4096, 10**6)))
        wanted = [each for each in offsets if begin <= each < end]
        assert taken(scan) == (wanted[::-1] if newest_first else wanted)
        assert scan.is_done
        assert span.passed(newest_first=newest_first) == end - begin
        assert (span.records, span.removed, span.damaged) == (len(wanted), 0, 0)


@BOTH_WAYS
def test_a_scan_goes_on_where_another_one_stopped(monkeypatch: pytest.MonkeyPatch, newest_first: bool) -> None:
    dice = random.Random(12)
    for _ in range(3):
        log, offsets = drawn(dice)
        span = span_of(0, log.end, newest_first=newest_first)
        found: list[int] = []
        while span.passed(newest_first=newest_first) != log.end:
            scan = log.scan(monkeypatch, span, newest_first=newest_first)
            for _ in range(dice.randrange(1, 60)):
                if scan.head() is None:
                    break
                found.append(scan.take().first)
            scan.head()
        assert found == (offsets[::-1] if newest_first else offsets)
        assert span.records == len(offsets)


@BOTH_WAYS
def test_a_damaged_batch_is_one_entry(monkeypatch: pytest.MonkeyPatch, newest_first: bool) -> None:
    log = MemoryLog()
    for offset in (0, 10, 20):
        log.add(offset, 10)
    log.damage(1)
    span = span_of(5, 30, newest_first=newest_first)
    scan = log.scan(monkeypatch, span, newest_first=newest_first)
    wanted = [*range(5, 10), 10, *range(20, 30)]
    assert taken(scan) == (wanted[::-1] if newest_first else wanted)
    assert (span.records, span.damaged, scan.is_done) == (15, 10, True)


@BOTH_WAYS
def test_a_range_within_a_damaged_batch(monkeypatch: pytest.MonkeyPatch, newest_first: bool) -> None:
    log = MemoryLog()
    log.add(0, 30)
    log.damage(0)
    span = span_of(5, 9, newest_first=newest_first)
    scan = log.scan(monkeypatch, span, newest_first=newest_first)
    assert taken(scan) == [5]
    assert (span.damaged, scan.is_done) == (4, True)


@BOTH_WAYS
@pytest.mark.parametrize("start", [1, 35, 99, 100])
def test_what_is_removed_is_counted(monkeypatch: pytest.MonkeyPatch, newest_first: bool, start: int) -> None:
    log = MemoryLog()
    for offset in range(0, 100, 10):
        log.add(offset, 10)
    span = span_of(0, 100, newest_first=newest_first)
    log.start = start
    scan = log.scan(monkeypatch, span, newest_first=newest_first, most_bytes=200)
    assert len(taken(scan)) == 100 - start
    assert (span.removed, span.records, scan.is_done) == (start, 100 - start, True)


def test_a_log_that_was_cut_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    log.add(0, 10)
    span = span_of(0, 50, newest_first=False)
    scan = log.scan(monkeypatch, span, newest_first=False)
    assert taken(scan) == list(range(10))
    assert scan.failure is not None
    assert (span.position, scan.is_done) == (10, False)


@BOTH_WAYS
def test_a_leader_that_fails_leaves_the_position(monkeypatch: pytest.MonkeyPatch, newest_first: bool) -> None:
    log = MemoryLog()
    log.add(0, 10)
    log.failures.append(error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    span = span_of(0, 10, newest_first=newest_first)
    scan = log.scan(monkeypatch, span, newest_first=newest_first)
    assert scan.head() is None
    assert scan.failure is not None
    assert (scan.failure.code, span.passed(newest_first=newest_first)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert len(taken(log.scan(monkeypatch, span, newest_first=newest_first))) == 10


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID]
)
def test_a_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    log = MemoryLog()
    log.add(0, 1)
    log.failures.append(error_for(code))
    with pytest.raises(TopicIsGone):
        log.scan(monkeypatch, span_of(0, 1, newest_first=True), newest_first=True).head()


def test_backwards_large_records_come_in_small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of 128 records of 1 MB would be 128 MB."""
    log = MemoryLog()
    for offset in range(150):
        log.add(offset, 1, value=bytes(100_000))
    span = span_of(0, 150, newest_first=True)
    scan = log.scan(monkeypatch, span, newest_first=True, most_bytes=400_000)
    for _ in range(5):
        scan.head()
        scan.take()
    assert scan.fetched_bytes < 4_000_000
    assert taken(scan) == list(range(144, -1, -1))


def test_backwards_small_records_are_not_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for offset in range(0, 20_000, 500):
        log.add(offset, 500)
    total = sum(map(len, log.batches))
    span = span_of(0, 20_000, newest_first=True)
    scan = log.scan(monkeypatch, span, newest_first=True, most_bytes=4 << 20)
    assert taken(scan) == list(range(19_999, -1, -1))
    assert scan.fetched_bytes < 4 * total
