"""`barnabas dlq list` and `show` against a broker."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from barnabas.cli.dlq import dlq
from barnabas.embedded.broker import Broker
from tests.cli.dlq_commands import Commands


@pytest.fixture
def commands(barnabas: Broker) -> Commands:
    return Commands(barnabas)


@pytest.mark.slow
def test_dead_letters_are_listed_and_shown(commands: Commands) -> None:
    (listed,) = commands.data("list")
    assert (listed["topic"], listed["records"], listed["not_redriven"]) == ("orders.dlq", 4, 4)
    assert listed["errors"] == {"TimeoutError": 2, "shop.NoCard": 2}
    shown = commands.data("show", "orders.dlq", "--filter", "error=NoCard", "-n", "1")
    assert [(each["value"], each["failure"]["offset"], each["redriven"]) for each in shown] == [("order 1", 1, False)]
    assert {"key": "__dlq.errors.delivery.count", "value": "4"} in shown[0]["headers"]


@pytest.mark.slow
def test_an_ordinary_topic_is_not_taken_for_dead_letters_without_a_word(commands: Commands, barnabas: Broker) -> None:
    assert commands.run("show", "orders.dlq").stderr == ""
    assert commands.run("show", "orders").stderr == "", "it has no records"
    producer = Producer({"bootstrap.servers": commands.bootstrap})
    producer.produce("orders", "an order")
    assert producer.flush(30) == 0
    for output in ("table", "json"):
        result = commands.run("show", "orders", "--output", output)
        assert result.exit_code == 0
        assert result.stderr == "these records have no dead-letter headers: orders may be an ordinary topic\n"
    assert [each["value"] for each in commands.data("show", "orders")] == ["an order"]


@pytest.mark.slow
def test_topics_with_other_names(commands: Commands, barnabas: Broker) -> None:
    for name in ("graveyard", "dlq.share", "shop-dlt"):
        barnabas.create_topic(name, partitions=1)
    assert [each["topic"] for each in commands.data("list")] == ["dlq.share", "orders.dlq", "shop-dlt"]
    assert [each["topic"] for each in commands.data("list", "--topic", "graveyard")] == ["graveyard"]


def test_a_filter_that_does_not_exist() -> None:
    result = CliRunner().invoke(dlq, ["show", "orders.dlq", "--filter", "eror=x"])
    assert "'eror' is not one of error, message" in result.stderr
    assert "did you mean error?" in result.stderr
