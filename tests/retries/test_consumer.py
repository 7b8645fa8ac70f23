"""The consumer against a broker: retries when they are due, dead letters with their headers, keys that are held back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.embedded.broker import Broker
from barnabas.retries import Output, Record, RetryingConsumer, RetryPolicy
from barnabas.retries.consumer import Function
from barnabas.retries.forwarding import GroupWentOn
from barnabas.retries.headers import read_failure
from barnabas.retries.topics import MissingTopic
from tests.pages import blocks
from tests.retries.records import committed, values, write

POLICY = RetryPolicy(dead_letter="orders.dlq", delays=("10s", "1m"))
NOW_MS = 1_700_000_000_000


@dataclass
class Shop:
    """A source topic, a clock that the test moves, and what the function saw.

    Attributes:
        broken: the values whose processing fails.
    """

    bootstrap: str
    now_ms: int = NOW_MS
    broken: set[str] = field(default_factory=set)
    tried: list[tuple[str, int]] = field(default_factory=list)

    def consumer(self, policy: RetryPolicy = POLICY, **options: object) -> RetryingConsumer:
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "billing"}
        return RetryingConsumer(settings, ["orders"], policy, now_ms=lambda: self.now_ms, **options)  # type: ignore[arg-type]

    def charge(self, record: Record) -> list[Output]:
        value = (record.value or b"").decode()
        self.tried.append((value, record.attempt))
        if value in self.broken:
            raise ValueError(f"no card for {value}")
        return [Output("bills", record.value, record.key)]

    def until(self, consumer: RetryingConsumer, done: Callable[[], bool]) -> None:
        for _ in range(200):
            if done():
                return
            consumer.step(self.charge, 0.1)
        raise AssertionError(f"not done: {self.tried}")

    def quiet(self, consumer: RetryingConsumer) -> None:
        """Step on until nothing is due any more."""
        empty = 0
        while empty < 4:
            empty = 0 if consumer.step(self.charge, 0.1) else empty + 1


@pytest.fixture
def shop(barnabas: Broker) -> Shop:
    barnabas.create_topic("orders", partitions=1)
    barnabas.create_topic("bills", partitions=1)
    return Shop(barnabas.bootstrap_servers)


def test_an_idle_connection_closes_before_the_transaction_expires(shop: Shop) -> None:
    """The first or the second close wakes a call that the library leaves waiting for a coordinator that was stopped."""
    made: list[dict[str, Any]] = []

    def producer(settings: dict[str, Any]) -> Producer:
        made.append(settings)
        return Producer(settings)

    shop.consumer(producer=producer).close()
    (settings,) = made
    assert 0 < 2 * settings["connections.max.idle.ms"] < settings["transaction.timeout.ms"]


@pytest.mark.slow
def test_a_record_is_tried_again_when_it_is_due_and_ends_as_a_dead_letter(shop: Shop) -> None:
    shop.broken = {"b"}
    write(shop.bootstrap, "orders", [("k1", "a"), ("k2", "b"), ("k3", "c")])
    with shop.consumer() as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 3)
        shop.quiet(consumer)
        assert shop.tried == [("a", 1), ("b", 1), ("c", 1)]
        (waiting,) = committed(shop.bootstrap, "orders.retry.1")
        failure = read_failure(waiting.headers)
        assert failure is not None
        assert (failure.attempts, failure.due_ms) == (1, NOW_MS + 10_000)

        shop.now_ms += 9_999
        shop.quiet(consumer)
        assert len(shop.tried) == 3, "the delay is kept"
        shop.now_ms += 1
        shop.until(consumer, lambda: shop.tried[3:] == [("b", 2)])
        shop.now_ms += 60_000
        shop.until(consumer, lambda: shop.tried[4:] == [("b", 3)])
        write(shop.bootstrap, "orders", [("k4", "d")])
        shop.until(consumer, lambda: shop.tried[5:] == [("d", 1)])
    assert values(committed(shop.bootstrap, "bills")) == ["a", "c", "d"]
    (dead,) = committed(shop.bootstrap, "orders.dlq")
    failure = read_failure(dead.headers)
    assert failure is not None
    assert (dead.key, dead.value) == (b"k2", b"b")
    assert (failure.topic, failure.partition, failure.offset, failure.group) == ("orders", 0, 1, "billing")
    assert (failure.attempts, failure.error, failure.message) == (3, "ValueError", "no card for b")
    assert (failure.first_failure_ms, failure.last_failure_ms) == (NOW_MS, NOW_MS + 70_000)
    assert failure.due_ms is None


@pytest.mark.slow
def test_other_partitions_go_on_while_one_waits(shop: Shop) -> None:
    shop.broken = {"b"}
    write(shop.bootstrap, "orders", [("k", "b")])
    with shop.consumer() as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 1)
        shop.quiet(consumer)
        write(shop.bootstrap, "orders", [("k", str(number)) for number in range(50)])
        shop.until(consumer, lambda: len(shop.tried) == 51)
    assert len(committed(shop.bootstrap, "bills")) == 50, "a later record of the key overtakes, as the page says"


@pytest.mark.slow
def test_a_key_is_held_back_behind_its_failed_record_also_after_a_restart(shop: Shop) -> None:
    shop.broken = {"k1-a"}
    write(shop.bootstrap, "orders", [("k1", "k1-a"), ("k2", "k2-a"), ("k1", "k1-b")])
    with shop.consumer(hold_keys=True) as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 2)
        shop.quiet(consumer)
    write(shop.bootstrap, "orders", [("k1", "k1-c"), ("k2", "k2-b")])
    with shop.consumer(hold_keys=True) as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 3)
        shop.now_ms += 10_000
        shop.until(consumer, lambda: ("k1-a", 2) in shop.tried)
        shop.quiet(consumer)
        shop.broken.clear()
        shop.now_ms += 60_000
        shop.until(consumer, lambda: ("k1-c", 1) in shop.tried)
    assert shop.tried == [
        ("k1-a", 1), ("k2-a", 1), ("k2-b", 1), ("k1-a", 2), ("k1-a", 3), ("k1-b", 1), ("k1-c", 1),
    ]  # fmt: skip
    assert values(committed(shop.bootstrap, "bills")) == ["k2-a", "k2-b", "k1-a", "k1-b", "k1-c"]


@pytest.mark.slow
def test_an_error_that_no_retry_mends_is_a_dead_letter_at_once(shop: Shop) -> None:
    shop.broken = {"a"}
    write(shop.bootstrap, "orders", [(None, "a"), (None, "b")])
    policy = RetryPolicy(dead_letter="orders.dlq", delays=("10s",), not_retried=(ValueError,))
    with shop.consumer(policy) as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 2)
    assert values(committed(shop.bootstrap, "orders.dlq")) == ["a"]


@pytest.mark.slow
def test_a_group_passes_over_what_another_group_has_to_retry(shop: Shop) -> None:
    shop.broken = {"a"}
    write(shop.bootstrap, "orders", [("k", "a")])
    with shop.consumer() as consumer:
        shop.until(consumer, lambda: len(shop.tried) == 1)
    other = Shop(shop.bootstrap, NOW_MS + 20_000)
    settings = {"bootstrap.servers": shop.bootstrap, "group.id": "shipping"}
    with RetryingConsumer(settings, ["orders"], POLICY, now_ms=lambda: other.now_ms) as consumer:
        other.until(consumer, lambda: len(other.tried) == 1)
        other.quiet(consumer)
    assert other.tried == [("a", 1)]


@pytest.mark.slow
def test_a_new_group_that_begins_at_the_end_reads_its_retry_topics_from_the_beginning(shop: Shop) -> None:
    shop.broken = {"a"}
    settings = {"bootstrap.servers": shop.bootstrap, "group.id": "billing"}
    with RetryingConsumer(settings, ["orders"], POLICY, now_ms=lambda: shop.now_ms) as consumer:
        write(shop.bootstrap, "orders", [("k", "a")])
        shop.until(consumer, lambda: len(shop.tried) == 1)
    shop.now_ms += 10_000
    settings["auto.offset.reset"] = "latest"
    with RetryingConsumer(settings, ["orders"], POLICY, now_ms=lambda: shop.now_ms) as consumer:
        shop.until(consumer, lambda: shop.tried == [("a", 1), ("a", 2)])


@pytest.mark.slow
def test_a_consumer_that_its_group_gave_up_joins_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop.bootstrap, "orders", [("k", "a"), ("k", "b")])
    with shop.consumer() as consumer:
        with monkeypatch.context() as given_up:

            def refuse(*_: object) -> None:
                raise GroupWentOn

            given_up.setattr(consumer._forwarder, "send", refuse)
            shop.until(consumer, lambda: len(shop.tried) >= 2)
        shop.tried.clear()
        shop.until(consumer, lambda: shop.tried == [("a", 1), ("b", 1)])
    assert values(committed(shop.bootstrap, "bills")) == ["a", "b"]


@pytest.mark.slow
def test_an_error_in_a_rebalance_ends_the_consumer(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.consumer() as consumer:

        def refuse(*_: object) -> None:
            raise RuntimeError("no positions")

        monkeypatch.setattr(consumer, "_beginnings", refuse)
        with pytest.raises(RuntimeError, match="no positions"):
            shop.until(consumer, lambda: False)


@pytest.mark.parametrize(
    ("settings", "topics", "words"),
    [
        ({"group.id": "g"}, ["orders"], "bootstrap.servers is missing"),
        ({"bootstrap.servers": "b"}, ["orders"], "group.id is missing"),
        ({"bootstrap.servers": "b", "group.id": "g", "isolation.level": "x"}, ["orders"], "isolation.level is set by"),
        ({"bootstrap.servers": "b", "group.id": "g"}, "orders", 'write \\["orders"\\]'),
        ({"bootstrap.servers": "b", "group.id": "g"}, ["orders.retry.1"], "is one of the policy's"),
    ],
)
def test_settings_that_contradict_the_promise(settings: dict[str, str], topics: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RetryingConsumer(settings, topics, POLICY)


@pytest.mark.slow
def test_the_sample_of_the_page(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop.bootstrap, "orders", [("k", "fine"), ("k", "broken")])

    def run(self: RetryingConsumer, function: Function) -> None:
        while not (values(committed(shop.bootstrap, "bills")) and committed(shop.bootstrap, "orders.retry.1")):
            self.step(function)

    monkeypatch.setattr(RetryingConsumer, "run", run)
    sample = blocks("docs/retries.md")[0].replace("localhost:9092", shop.bootstrap)
    exec(sample, {})
    assert values(committed(shop.bootstrap, "bills")) == ["fine"]


@pytest.mark.slow
def test_topics_that_cannot_serve(shop: Shop, barnabas: Broker) -> None:
    settings = {"bootstrap.servers": shop.bootstrap, "group.id": "billing"}
    with pytest.raises(MissingTopic, match="topic ordrs does not exist"):
        RetryingConsumer(settings, ["ordrs"], POLICY)
    barnabas.create_topic("orders.dlq", partitions=2)
    with pytest.raises(ValueError, match="hold_keys needs the same number of partitions in all topics"):
        RetryingConsumer(settings, ["orders"], POLICY, hold_keys=True)
