"""`barnabas dlq purge` against a broker."""

from __future__ import annotations

import pytest

from barnabas.embedded.broker import Broker
from tests.cli.dlq_commands import Commands


@pytest.fixture
def commands(barnabas: Broker) -> Commands:
    return Commands(barnabas)


@pytest.mark.slow
def test_dead_letters_are_deleted_up_to_what_was_seen(commands: Commands) -> None:
    commands.data("redrive", "orders.dlq", "--filter", "error=TimeoutError")
    assert [each["offsets"] for each in commands.data("purge", "orders.dlq", "--redriven", "--dry-run")] == [1]
    assert [each["offsets"] for each in commands.data("purge", "orders.dlq", "--redriven")] == [1]
    assert [each["value"] for each in commands.data("show", "orders.dlq")] == ["order 1", "order 2", "order 3"]
    assert [each["offsets"] for each in commands.data("purge", "orders.dlq")] == [3]
    assert commands.data("purge", "orders.dlq") == []
    assert commands.data("list")[0]["records"] == 0
