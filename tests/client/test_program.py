"""The sign of a node: its own words about a setting that both programs have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.errors import ConnectionLost, ConnectionRefused, OtherSecurity
from barnabas.client.program import Program, is_ours, other_program, program_at
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.metadata_versions import NAMES


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def raising(error: Exception) -> BlockingConnection:
    raise error


def test_a_node_of_barnabas(broker: barnabas.Broker) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    found = program_at(lambda: BlockingConnection(host, int(port)), 1)
    assert (found.program, found.why) == (Program.BARNABAS, "")
    with Admin(broker.bootstrap_servers) as admin:
        controllers = {7: (host, int(port)), 8: ("127.0.0.1", 1)}
        programs = admin.describe_programs(controllers)
    assert programs[1] == found, "a broker of this cluster"
    assert (programs[7].program, programs[8].program) == (Program.UNKNOWN, Program.STOPPED)
    assert NAMES[found.supports or 0] == "4.4-IV2"


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
        assert found[:2] == (program, error.message)


def test_the_other_program() -> None:
    assert other_program(Program.KAFKA) == Program.BARNABAS
    assert other_program(Program.BARNABAS) == Program.KAFKA
