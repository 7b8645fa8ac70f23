"""The policy: the names and delays that follow from it, and values that contradict each other."""

from typing import Any

import pytest

from barnabas.retries.policy import RetryPolicy


@pytest.mark.parametrize(
    ("dead_letter", "topics"),
    [
        ("orders.dlq", ("orders.retry.1", "orders.retry.2")),
        ("orders-dlq", ("orders-retry-1", "orders-retry-2")),
        ("graveyard", ("graveyard.retry.1", "graveyard.retry.2")),
        (".dlq", (".dlq.retry.1", ".dlq.retry.2")),
    ],
)
def test_the_retry_topics_are_named_after_the_dead_letter_topic(dead_letter: str, topics: tuple[str, ...]) -> None:
    assert RetryPolicy(dead_letter, retries=2, delays=("1s",)).retry_topics == topics


def test_the_last_delay_counts_for_the_retries_after_it() -> None:
    policy = RetryPolicy(dead_letter="orders.dlq", retries=4, delays=("10s", "1m"))
    assert [policy.delay_ms(retry) for retry in (1, 2, 3, 4)] == [10_000, 60_000, 60_000, 60_000]


def test_there_is_a_retry_for_each_delay() -> None:
    assert RetryPolicy("orders.dlq", delays=("10s", "1m")).total_retries == 2
    assert RetryPolicy("orders.dlq", retries=0).retry_topics == ()


def test_a_topic_knows_its_retry() -> None:
    policy = RetryPolicy("orders.dlq", delays=("10s", "1m"))
    names = ("orders", "orders.retry.2", "orders.dlq", "orders.retry.3")
    assert [policy.retry_of(name) for name in names] == [0, 2, 0, 0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dead_letter": ""}, "dead_letter is empty"),
        ({"delays": "10s"}, r'write delays=\("10s",\)'),
        ({"delays": ("soon",)}, "'soon' is not a valid duration"),
        ({"delays": ("-PT1H",)}, "a delay must not be negative"),
        ({"retries": -1}, "retries must not be negative"),
        ({"delays": (), "retries": 1}, "delays is empty"),
        ({"retries": 1, "delays": ("1s", "2s")}, "2 delays for 1 retries"),
        ({"dead_letter": "o" * 245 + ".dlq"}, "longer than 249 characters"),
    ],
)
def test_values_that_contradict_each_other(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RetryPolicy(**{"dead_letter": "orders.dlq", **values})
