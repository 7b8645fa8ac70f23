"""The sign of a node: its own words about a setting that both programs have."""

from __future__ import annotations

import barnabas
from barnabas.adopt.program import Program, is_ours, other_program, program_at
from barnabas.client.errors import ConnectionLost, ConnectionRefused, OtherSecurity
from barnabas.client.wire import BlockingConnection


def raising(error: Exception) -> BlockingConnection:
    raise error


def test_a_node_of_barnabas(broker: barnabas.Broker) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    assert program_at(lambda: BlockingConnection(host, int(port)), 1) == (Program.BARNABAS, "")


def test_another_node_answers_at_the_address(broker: barnabas.Broker) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    found = program_at(lambda: BlockingConnection(host, int(port)), 2)
    assert found.program == Program.UNKNOWN
    assert found.why


def test_the_words_of_apache_kafka() -> None:
    assert not is_ours("The number of queued bytes allowed before no more requests are read")
    assert not is_ours(None)


def test_a_node_that_cannot_be_asked() -> None:
    for error, program in (
        (ConnectionRefused("refused"), Program.STOPPED),
        (ConnectionLost("lost"), Program.SILENT),
        (OtherSecurity("it speaks TLS"), Program.UNKNOWN),
    ):
        found = program_at(lambda error=error: raising(error), 1)  # type: ignore[misc]
        assert found == (program, error.message)


def test_the_other_program() -> None:
    assert other_program(Program.KAFKA) == Program.BARNABAS
    assert other_program(Program.BARNABAS) == Program.KAFKA
