"""Delayed delivery: what the function decides, how long a record waits, and what kills leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.embedded.broker import Broker
from barnabas.retries import Later, Output, Record, RetryingConsumer, RetryPolicy
from barnabas.retries.delivery import DELAYS, deliver, delivery_policy
from barnabas.retries.headers import read_failure
from barnabas.retries.routing import Router
from barnabas.words.durations import parse_duration_ms
from tests.retries.mortal import Killed, Mortal
from tests.retries.records import committed, values

NOW_MS = 1_700_000_000_000
TOPICS = {"orders", "invoices"}


def record(*headers: tuple[str, bytes | None]) -> Record:
    return Record("orders.delayed", 0, 7, NOW_MS, b"k", b"v", headers)


def function(to: str | None = "orders") -> Callable[[Record], list[Output]]:
    return deliver(to, TOPICS.__contains__, lambda: NOW_MS)


@pytest.mark.parametrize("due", ["1700000000000", "1700000000", "2023-11-14T22:13:20Z", "2023-11-14"])
def test_what_is_due_is_delivered_as_it_is(due: str) -> None:
    headers = (("trace", b"1"), ("deliver-at", due.encode()))
    assert function()(record(*headers)) == [Output("orders", b"v", b"k", headers)]


def test_what_is_not_due_comes_again() -> None:
    with pytest.raises(Later) as raised:
        function()(record(("deliver-at", b"1700000000001")))
    assert raised.value.due_ms == NOW_MS + 1


def test_a_header_names_the_topic() -> None:
    (output,) = function(None)(record(("deliver-at", b"0"), ("deliver-to", b"invoices")))
    assert output.topic == "invoices"


@pytest.mark.parametrize(
    ("to", "headers", "error"),
    [
        ("orders", (), "the record has no header deliver-at"),
        ("orders", (("deliver-at", None),), "the record has no header deliver-at"),
        ("orders", (("deliver-at", b"tomorrow"),), "'tomorrow' is not a valid time"),
        ("orders", (("deliver-at", b"-1h"),), "deliver-at is a time such as .*, not -1h"),
        (None, (("deliver-at", b"0"),), "no header deliver-to, and the service was started without a topic"),
        ("orders.delayed", (("deliver-at", b"0"),), "would be delivered to the topic that it waits for"),
        ("bills", (("deliver-at", b"0"),), "topic bills does not exist"),
    ],
)
def test_what_cannot_be_delivered(to: str | None, headers: tuple[tuple[str, bytes | None], ...], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        function(to)(record(*headers))


@pytest.mark.parametrize("seconds", [0.2, 1, 4.9, 59, 3600, 7 * 86_400 + 3.3])
def test_the_waits_of_a_record_end_at_its_time(seconds: float) -> None:
    """Each topic has its records in the order in which they are due, but for the last wait, which is shorter than the first topic's."""
    policy = delivery_policy("orders.delayed")
    router = Router(policy, "g", dict.fromkeys((*policy.retry_topics, policy.dead_letter), 1))
    due_ms, now_ms = NOW_MS + round(seconds * 1000), NOW_MS
    arrival = router.arrival(record(("deliver-at", b"x")))
    waits = 0
    while now_ms < due_ms:
        output, retry = router.held_until(arrival, due_ms, now_ms)
        arrival = router.arrival(Record(output.topic, 0, 1, now_ms, output.key, output.value, output.headers))
        assert arrival.record.attempt == 1
        delay_ms = policy.delay_ms(retry)
        assert arrival.due_ms == min(due_ms, now_ms + delay_ms)
        assert arrival.due_ms == now_ms + delay_ms or retry == 1
        now_ms = arrival.due_ms
        waits += 1
    assert now_ms == due_ms
    assert waits <= 14 + 5 + 7 + 4 + 5 + 5 + 5
    assert arrival.record.headers == (("deliver-at", b"x"),)


def test_each_delay_is_longer_than_the_one_before() -> None:
    found = [parse_duration_ms(each) for each in DELAYS]
    assert found == sorted(set(found))


def test_a_policy_without_retries_has_nowhere_to_wait() -> None:
    router = Router(RetryPolicy("orders.dlq", delays=()), "g")
    with pytest.raises(ValueError, match="a policy without retries has no topic in which a record may wait"):
        router.held_until(router.arrival(record()), NOW_MS + 1, NOW_MS)


def produce(bootstrap: str, waits_ms: Sequence[int | None]) -> None:
    """Produce a record for each wait, whose value is its number and the wait; None has no header."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, wait_ms in enumerate(waits_ms):
        headers = [] if wait_ms is None else [("deliver-at", str(NOW_MS + wait_ms).encode())]
        producer.produce("orders.delayed", f"{number}:{wait_ms}", f"{number}", headers=headers)
    assert producer.flush(30) == 0


def wait_of(value: str) -> int:
    return int(value.split(":")[1])


# After each call of a first transaction, and in later ones.
MOMENTS = (1, 3, 5, 12, 21)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moments", [pytest.param((), id="alive"), pytest.param(MOMENTS, id="killed", marks=pytest.mark.conform)]
)
def test_records_are_delivered_once_when_they_are_due(barnabas: Broker, moments: Sequence[int]) -> None:
    bootstrap = barnabas.bootstrap_servers
    for topic in ("orders.delayed", "orders"):
        barnabas.create_topic(topic, partitions=1)
    waits_ms = [0, 70_000, 500, None, 1_500, 6_000, 4_000_000, 300]
    produce(bootstrap, waits_ms)
    now_ms = NOW_MS
    left = [*moments, None]
    deaths: list[str] = []
    policy = delivery_policy("orders.delayed")

    def opened() -> RetryingConsumer:
        def producer(settings: dict[str, Any], moment: int | None = left[0]) -> Mortal:
            return Mortal(settings, moment)

        settings = {"bootstrap.servers": bootstrap, "group.id": "deliver"}
        return RetryingConsumer(
            settings,
            ["orders.delayed"],
            policy,
            transactional_id="deliver",
            now_ms=lambda: now_ms,
            producer=producer,  # type: ignore[arg-type]
        )

    def is_done() -> bool:
        """Whether everything is delivered that was due a second ago."""
        due = {each for each in wanted if NOW_MS + (wait_of(each) and wait_of(each) + 1000) <= now_ms}
        return due <= set(values(committed(bootstrap, "orders")))

    def work() -> None:
        """Step until it is done, whoever dies; a successor is there before anybody reads what a dead one left open."""
        while True:
            try:
                consumers.append(consumers.pop() if consumers else opened())
                if is_done():
                    return
                while not consumers[0].step(deliver("orders", TOPICS.__contains__, lambda: now_ms), 0.1):
                    pass
            except Killed as death:
                deaths.append(str(death))
                left.pop(0)
                for each in consumers:
                    each.close()
                consumers.clear()

    consumers: list[RetryingConsumer] = []
    wanted = [f"{number}:{wait_ms}" for number, wait_ms in enumerate(waits_ms) if wait_ms is not None]
    delivered: dict[str, int] = {}
    for elapsed_ms in (0, 1_299, 1_500, 2_500, 7_000, 60_000, 71_000, 3_600_000, 4_001_000):
        now_ms = NOW_MS + elapsed_ms
        work()
        for value in values(committed(bootstrap, "orders")):
            delivered.setdefault(value, elapsed_ms)
    consumers.pop().close()
    assert sorted(values(committed(bootstrap, "orders"))) == wanted
    assert len(deaths) == len(moments)
    for value, elapsed_ms in delivered.items():
        assert wait_of(value) <= elapsed_ms
    (dead,) = committed(bootstrap, "orders.delayed.dlq")
    failure = read_failure(dead.headers)
    assert failure is not None
    assert (dead.value, failure.message) == (b"3:None", "the record has no header deliver-at")
