"""A mistyped topic is an error of the tools, never a new topic, although brokers create topics on first use."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.client.admin import Admin
from tests.cli.test_commands import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as started:
        started.create_topic("orders")
        yield started


def run(broker: barnabas.Broker, *arguments: str, given: str = "") -> Result:
    name, *rest = arguments
    command: click.Command = load(name)
    options = ["-b", broker.bootstrap_servers, "--timeout-ms", "3000"]
    return CliRunner().invoke(command, [*rest, *options], input=given, prog_name=f"barnabas {name}")


def topics(broker: barnabas.Broker) -> list[str]:
    with Admin(broker.bootstrap_servers) as admin:
        return [topic.name for topic in admin.list_topics()]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("topic", "describe", "oders"), ""),
        (("topic", "alter", "oders", "-p", "3"), ""),
        (("topic", "delete", "oders"), ""),
        (("topic", "which-partition", "oders", "k"), ""),
        (("consume", "oders", "-e"), ""),
        (("consume", "oders", "-e", "-g", "g"), ""),
        (("produce", "oders"), "one\n"),
        (("produce", "-f", "%t %v\\n"), "orders one\noders two\n"),
        (("produce", "-f", "json"), '{"topic": "orders", "value": "one"}\n{"topic": "oders", "value": "two"}\n'),
        (("group", "reset-offsets", "g", "--topic", "oders", "--to-earliest", "--execute"), ""),
        (("config", "describe", "topic", "oders"), ""),
        (("config", "alter", "topic", "oders", "--set", "retention.ms=1"), ""),
        (("txn", "doctor", "oders"), ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistyped_topic_is_not_created(broker: barnabas.Broker, arguments: tuple[str, ...], given: str) -> None:
    result = run(broker, *arguments, given=given)
    assert topics(broker) == ["orders"]
    assert result.exit_code == 1, result.output
    assert "oders" in result.stderr


def test_produce_creates_a_topic_when_asked_to(broker: barnabas.Broker) -> None:
    for arguments in (("produce", "new-1"), ("produce", "-f", "%t %v\\n")):
        given = "one\n" if len(arguments) == 2 else "new-2 one\n"
        assert run(broker, *arguments, "--allow-auto-topic-creation", given=given).exit_code == 0
    assert topics(broker) == ["new-1", "new-2", "orders"]
