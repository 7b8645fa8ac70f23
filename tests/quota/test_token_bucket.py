"""The bucket's burst, its debt and its recovery; `test_rate` compares both meters with Apache Kafka's."""

from __future__ import annotations

from barnabas.quota.token_bucket import TokenBucket

EPOCH_MS = 1_700_000_000_000


def test_a_bucket_begins_full_and_tells_the_time_to_refill() -> None:
    # The example of the KIP: 5/s over 100 s is a burst of 500; 560 at once leave -60, which take 12 s.
    bucket = TokenBucket(100, 1000)
    bucket.spend(560, 5, EPOCH_MS)
    assert bucket.measure(5, EPOCH_MS) == -60
    assert bucket.throttle_ms(5, EPOCH_MS) == 12_000
    assert bucket.throttle_ms(5, EPOCH_MS + 12_000) == 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    bucket = TokenBucket(10, 1000)
    assert bucket.measure(5, EPOCH_MS) == 50
    assert bucket.measure(5, EPOCH_MS + 3_600_000) == 50
    bucket.spend(-100, 5, EPOCH_MS + 3_600_000)
    assert bucket.measure(5, EPOCH_MS + 3_600_000) == 50


def test_a_lower_bound_lowers_the_burst() -> None:
    bucket = TokenBucket(10, 1000)
    assert bucket.measure(5, EPOCH_MS) == 50
    assert bucket.measure(2, EPOCH_MS) == 20


def test_the_time_to_refill_is_rounded_as_java_rounds() -> None:
    bucket = TokenBucket(10, 1000)
    bucket.spend(31, 3, EPOCH_MS)
    assert bucket.measure(3, EPOCH_MS) == -1
    assert bucket.throttle_ms(3, EPOCH_MS) == 333
