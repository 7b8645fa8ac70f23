"""Rates and token buckets against what Kafka's own classes say, and the cases that explain them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.quota.rate import Rate, SimpleRate, java_int, java_round
from barnabas.quota.token_bucket import TokenBucket

EPOCH_MS = 1_700_000_000_000
GOLDEN = Path(__file__).with_name("throttle_times.tsv")
_RUN = re.compile(r"# (rate|bucket) samples=(\d+) window_seconds=(\d+) bound=([\d.]+)")


def runs() -> Iterator[tuple[str, int, int, float, list[tuple[int, float, int]]]]:
    rows: list[tuple[int, float, int]] = []
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if (match := _RUN.match(line)) is not None:
            rows = []
            yield match[1], int(match[2]), int(match[3]) * 1000, float(match[4]), rows
        elif not line.startswith("#"):
            at_ms, value, throttle_ms = line.split("\t")
            rows.append((int(at_ms), float(value), int(throttle_ms)))


def test_every_throttle_time_is_apache_kafkas() -> None:
    throttled = 0
    for kind, samples, window_ms, bound, rows in list(runs()):
        assert len(rows) == 60
        rate = Rate(samples, window_ms, EPOCH_MS + rows[0][0])
        bucket = TokenBucket(samples, window_ms)
        for at_ms, value, expected in rows:
            now_ms = EPOCH_MS + at_ms
            if kind == "rate":
                rate.record(value, now_ms)
                got = rate.throttle_ms(bound, now_ms)
            else:
                bucket.spend(value, bound, now_ms)
                got = bucket.throttle_ms(bound, now_ms)
            assert got == expected, (kind, samples, window_ms, bound, at_ms)
            throttled += expected > 0
    assert throttled == 253


def test_a_spike_is_paid_for_over_the_window_it_happened_in() -> None:
    # 10 * 400 in ten seconds, then 2300 half a second into the eleventh: 6300 / 10.5 s = 600/s where 500/s are allowed.
    rate = Rate(11, 1000, EPOCH_MS)
    for second in range(10):
        rate.record(400, EPOCH_MS + second * 1000)
        assert rate.throttle_ms(500, EPOCH_MS + second * 1000) == 0
    now_ms = EPOCH_MS + 10_500
    rate.record(2300, now_ms)
    assert rate.measure(now_ms) == pytest.approx(600)
    assert rate.throttle_ms(500, now_ms) == 2100


def test_what_is_older_than_the_window_is_forgotten() -> None:
    rate = Rate(2, 1000, EPOCH_MS)
    rate.record(5000, EPOCH_MS)
    assert rate.measure(EPOCH_MS + 1999) > 0
    assert rate.measure(EPOCH_MS + 2000) == 0


def test_taking_back_leaves_what_was_before() -> None:
    rate = Rate(11, 1000, EPOCH_MS)
    rate.record(100, EPOCH_MS)
    before = rate.measure(EPOCH_MS)
    rate.record(900, EPOCH_MS)
    rate.record(-900, EPOCH_MS)
    assert rate.measure(EPOCH_MS) == before


def test_a_simple_rate_counts_over_one_window_at_least() -> None:
    simple = SimpleRate(11, 1000, EPOCH_MS)
    simple.record(500, EPOCH_MS)
    assert simple.measure(EPOCH_MS) == simple.measure(EPOCH_MS + 1000) == 500
    assert simple.measure(EPOCH_MS + 5000) == 100
    assert simple.measure(EPOCH_MS + 11_000) == 0


def test_rounding_is_javas() -> None:
    assert [java_round(x) for x in (0.5, 1.5, 2.4999, -0.5)] == [1, 2, 2, 0]
    assert java_round(1e30) == 2**31 - 1
    assert java_round(float("nan")) == 0
    assert [java_int(x) for x in (0.9, 1e30, float("inf"), float("nan"))] == [0, 2**31 - 1, 2**31 - 1, 0]
