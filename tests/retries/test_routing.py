"""Where records go, and with which headers."""

import pytest

from barnabas.retries.headers import FailureHeaders, read_failure, write_failure
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Output, Record
from barnabas.retries.routing import Router

POLICY = RetryPolicy("orders.dlq", delays=("10s", "1m"), not_retried=(KeyError,))
ROUTER = Router(POLICY, "billing", {"orders": 8, "orders.retry.1": 4, "orders.retry.2": 4, "orders.dlq": 1})
ORDER = Record("orders", 6, 42, 1_000, b"k", b"v", (("trace", b"1"),))


def consumed(output: Output) -> Record:
    """Return a forwarded record as the consumer of its topic gets it."""
    return Record(output.topic, output.partition or 0, 7, 9_999, output.key, output.value, output.headers)


def test_a_record_fails_until_it_is_a_dead_letter() -> None:
    first = ROUTER.failed(ROUTER.arrival(ORDER), ValueError("no"), 50_000)
    assert (first.topic, first.partition, first.key, first.value) == ("orders.retry.1", 2, b"k", b"v")
    again = ROUTER.arrival(consumed(first))
    assert (again.record, again.retry, again.due_ms) == (
        Record("orders", 6, 42, 1_000, b"k", b"v", (("trace", b"1"),), 2),
        1,
        60_000,
    )
    second = ROUTER.failed(again, TypeError("odd"), 60_000)
    assert second.topic == "orders.retry.2"
    last = ROUTER.failed(ROUTER.arrival(consumed(second)), TimeoutError("late"), 130_000)
    assert (last.topic, last.partition, last.headers[0]) == ("orders.dlq", 0, ("trace", b"1"))
    assert read_failure(last.headers) == FailureHeaders(
        "orders", 6, 42, 1_000, "billing", 3, "TimeoutError", "late", 50_000, 130_000, None
    )


def test_some_errors_are_never_retried() -> None:
    assert ROUTER.failed(ROUTER.arrival(ORDER), KeyError("id"), 1).topic == "orders.dlq"


def test_an_error_of_a_module_has_its_name() -> None:
    output = ROUTER.failed(ROUTER.arrival(ORDER), pytest.UsageError("no"), 1)
    failure = read_failure(output.headers)
    assert failure is not None
    assert failure.error == "pytest.UsageError"


def test_a_record_that_is_held_back_keeps_its_attempts() -> None:
    held = ROUTER.held_back(ROUTER.arrival(ORDER), 2)
    arrived = ROUTER.arrival(consumed(held))
    assert (held.topic, arrived.record.attempt, arrived.due_ms) == ("orders.retry.2", 1, 0)
    failed = ROUTER.arrival(consumed(ROUTER.failed(arrived, ValueError("no"), 5)))
    behind = ROUTER.arrival(consumed(ROUTER.held_back(failed, 2)))
    assert (behind.record.attempt, behind.failure.error, behind.due_ms) == (2, "ValueError", 0)


def test_a_record_that_somebody_else_sent_to_a_retry_topic() -> None:
    stray = Record("orders.retry.1", 1, 5, 2_000, None, b"v")
    assert ROUTER.arrival(stray).record == stray
    assert ROUTER.arrival(stray).is_ours
    other = write_failure(FailureHeaders("orders", 0, 1, group="shipping", due_ms=99_000))
    arrival = ROUTER.arrival(Record("orders.retry.1", 1, 5, 2_000, None, b"v", other))
    assert (arrival.is_ours, arrival.due_ms) == (False, 0)
