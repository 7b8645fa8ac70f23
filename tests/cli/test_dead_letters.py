"""Which dead letters pass a filter, and how an error is named."""

import pytest

from barnabas.cli.dead_letters import error_name, error_text, is_dead_letter_name, parse_filter
from barnabas.retries.headers import FailureHeaders
from barnabas.retries.record import Record
from barnabas.retries.redrive import DeadLetter

FAILURE = FailureHeaders("orders", 2, 42, group="billing", error="shop.NoCard", message="no card for bob")
DEAD = DeadLetter(Record("orders.dlq", 1, 17, 0, b"bob", b""), FAILURE, 0, False)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("error=shop.NoCard", True),
        ("error=NoCard", True),
        ("error=Card", False),
        ("message=for bob", True),
        ("message=alice", False),
        ("topic=orders", True),
        ("group=shipping", False),
        ("key=bob", True),
        ("partition=1", True),
        ("partition=2", False),
        ("offset=17", True),
    ],
)
def test_filters(text: str, passes: bool) -> None:
    assert parse_filter((text,))(DEAD) is passes


def test_all_filters_must_pass() -> None:
    assert parse_filter(("error=NoCard", "partition=1"))(DEAD)
    assert not parse_filter(("error=NoCard", "partition=2"))(DEAD)
    assert parse_filter(())(DEAD)


def test_an_error_without_a_class_has_its_text() -> None:
    rejected = FailureHeaders(message="Offset rejected by client.")
    assert error_name(rejected) == error_text(rejected) == "Offset rejected by client."
    assert (error_name(FAILURE), error_text(FAILURE)) == ("shop.NoCard", "shop.NoCard: no card for bob")
    assert (error_name(FailureHeaders()), error_text(FailureHeaders())) == ("unknown", None)


def test_names_of_dead_letter_topics() -> None:
    names = ("orders.dlq", "orders-dlq", "orders-dlt", "orders.DLT", "dlq.orders", "orders", "dlqueue", "mydlq")
    assert [is_dead_letter_name(name) for name in names] == [True, True, True, True, True, False, False, False]
