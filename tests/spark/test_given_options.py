"""Options as a user gives them: any case, and a sentence for a text that cannot be read."""

from __future__ import annotations

import pytest

from barnabas.spark.given_options import GivenOptions, addresses


def test_names_are_compared_without_regard_to_case() -> None:
    given = GivenOptions({"MinPartitions": "4", "topic": "orders"})
    assert (given.positive("minpartitions"), given.text("TOPIC"), given.names()) == (
        4,
        "orders",
        ["minpartitions", "topic"],
    )


def test_an_option_that_is_not_given() -> None:
    given = GivenOptions({})
    assert (given.text("a"), given.integer("a"), given.positive("a")) == (None, None, None)
    assert (given.not_negative("a", 3), given.boolean("a", True), addresses(given)) == (3, True, "")


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (lambda given: given.integer("a"), "x", "a must be a whole number, not 'x'"),
        (lambda given: given.positive("a"), "0", "a must be positive"),
        (lambda given: given.not_negative("a", 1), "-1", "a must not be negative"),
        (lambda given: given.boolean("a", True), "yes", "a must be true or false, not 'yes'"),
    ],
)
def test_a_text_that_cannot_be_read(read, text, sentence) -> None:
    with pytest.raises(ValueError) as caught:
        read(GivenOptions({"a": text}))
    assert str(caught.value) == sentence


def test_an_address_names_its_port() -> None:
    assert addresses(GivenOptions({"kafka.bootstrap.servers": " a:1,b:2 "})) == "a:1,b:2"
    with pytest.raises(ValueError, match="'b' has no port: write host:port, for example b:9092"):
        addresses(GivenOptions({"kafka.bootstrap.servers": "a:1,b"}))
