"""`barnabas dlq redrive` against a broker."""

from __future__ import annotations

import pytest

from barnabas.embedded.broker import Broker
from tests.cli.dlq_commands import Commands
from tests.retries.records import committed, values


@pytest.fixture
def commands(barnabas: Broker) -> Commands:
    return Commands(barnabas)


@pytest.mark.slow
def test_dead_letters_are_sent_back_once(commands: Commands) -> None:
    chosen = ("redrive", "orders.dlq", "--filter", "error=TimeoutError")
    assert [each["status"] for each in commands.data(*chosen, "--dry-run")] == ["would be sent"]
    assert values(committed(commands.bootstrap, "orders", 2)) == []
    assert [(each["to"], each["records"]) for each in commands.data(*chosen, "--limit", "1")] == [("orders", 1)]
    assert [(each["to"], each["records"]) for each in commands.data(*chosen)] == [("orders", 1)]
    assert commands.data(*chosen) == []
    assert values(committed(commands.bootstrap, "orders", 2)) == ["order 0", "order 2"]
    assert commands.data("list")[0]["not_redriven"] == 2
    assert [each["redriven"] for each in commands.data("show", "orders.dlq")] == [True, False, True, False]


@pytest.mark.slow
def test_dead_letters_that_cannot_go_back(commands: Commands) -> None:
    commands.bury("lost", error="X")
    result = commands.run("redrive", "orders.dlq", "--filter", "error=X")
    assert result.stderr == (
        "error: dead letter orders.dlq-0@4 does not say where it came from (name a topic with --to)\n"
    )
    commands.bury("gone", error="Y", topic="order")
    result = commands.run("redrive", "orders.dlq", "--filter", "error=Y")
    assert result.stderr == "error: topic order does not exist; did you mean orders? (name another with --to)\n"
    assert commands.data("redrive", "orders.dlq", "--filter", "error=Y", "--to", "orders")[0]["records"] == 1
    assert values(committed(commands.bootstrap, "orders", 2)) == ["gone"]
    assert commands.run("redrive", "orders.dlq", "--to", "ordrs").stderr.startswith("error: topic ordrs does not exist")
