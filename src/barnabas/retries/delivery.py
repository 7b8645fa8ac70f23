"""Delayed delivery: a record waits until the time in its header, and is then delivered once.

    orders.delayed ──▶ retry topics, one for each length of wait ──▶ orders

Any producer sends the record to a topic of its own, with two headers:

    deliver-at   milliseconds or seconds since the epoch, or ISO 8601 (without a zone UTC)
    deliver-to   the topic to deliver to; without it the topic after `--to`

A record waits in the topics of a retry policy: each has one delay, so that its records are due in the order in which they stand there. A
record with a week to wait goes through the topic of twelve hours fourteen times, and one with a minute through shorter ones. So the
service holds nothing in memory, and a record never waits behind one that is due later by more than the shortest delay, a second.

The delivered record has the key, the value and the headers of the first one; its partition is chosen by its key.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Later, Output, Record
from barnabas.words.times import parse_time_ms

DELIVER_AT = "deliver-at"
DELIVER_TO = "deliver-to"
DELAYS = ("1s", "5s", "30s", "3m", "15m", "2h", "12h")


def delivery_policy(topic: str) -> RetryPolicy:
    """Return the policy of a topic's records: where they wait, and the topic of those that cannot be delivered, TOPIC.dlq."""
    return RetryPolicy(f"{topic}.dlq", DELAYS, not_retried=(Exception,))


def deliver(
    to: str | None, exists: Callable[[str], bool], now_ms: Callable[[], int]
) -> Callable[[Record], list[Output]]:
    """Return the function of a `RetryingConsumer` that delivers records.

    Args:
        to: where records without the header `deliver-to` go.
        exists: whether there is a topic; called for each record that is due.
        now_ms: the consumer's clock.

    The function raises ValueError for a record without a time or a topic, or with one that is not valid: it becomes a dead letter.
    """

    def function(record: Record) -> list[Output]:
        target = _header(record, DELIVER_TO) or to
        if target is None:
            raise ValueError(f"the record has no header {DELIVER_TO}, and the service was started without a topic")
        if target == record.topic:
            raise ValueError(f"the record would be delivered to the topic that it waits for, {target}")
        due_ms = _due_ms(record)
        if due_ms > now_ms():
            raise Later(due_ms)
        if not exists(target):
            raise ValueError(f"topic {target} does not exist")
        return [Output(target, record.value, record.key, record.headers)]

    return function


def _due_ms(record: Record) -> int:
    text = _header(record, DELIVER_AT)
    if text is None:
        raise ValueError(f"the record has no header {DELIVER_AT}")
    if text.startswith("-"):
        raise ValueError(f"{DELIVER_AT} is a time such as 1795743498845 or 2026-11-27T10:00:00Z, not {text}")
    return parse_time_ms(text, 0)


def _header(record: Record, name: str) -> str | None:
    """Return a header's text; of several with one name the last one, as Kafka's clients do."""
    found = [value for each, value in record.headers if each == name and value is not None]
    return found[-1].decode(errors="replace") if found else None
