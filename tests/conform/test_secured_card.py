"""One scenario of the card through TLS and a login, by two clients, on barnabas; `make card ARGS="--security WAY"` plays them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import answers

from tests.conform.card.clients import CLIENTS, Client
from tests.conform.card.scenarios import SCENARIOS
from tests.conform.card.security import WAYS, SecuredBarnabas, Security, address_of
from tests.conform.card.stage import Stage
from tests.conform.conftest import SETTINGS

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PLAYERS = [client for client in CLIENTS if client.name in ("confluent-kafka", "kafka-python")]


@pytest.fixture(scope="module", params=["SSL", "SASL_SSL/SCRAM-SHA-512", "SASL_SSL/OAUTHBEARER"])
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Security, SecuredBarnabas]]:
    with Security(WAYS[request.param], tmp_path_factory.mktemp("security")) as security:
        broker = SecuredBarnabas(tmp_path_factory.mktemp("node") / "barnabas", security, SETTINGS)
        with broker:
            security.admit(broker)
            yield security, broker


def play(client: Client, command: list[str], broker: SecuredBarnabas, folder: Path) -> list[object]:
    stage = Stage(
        broker,
        lambda plain: [*command, address_of(broker, plain)],
        f"{client.name}-{folder.name}",
        folder,
        client.codecs,
        client.traits,
    )
    try:
        SCENARIOS["codecs"](stage)
        return stage.transcript
    finally:
        stage.end()


@pytest.mark.parametrize("client", PLAYERS, ids=lambda client: client.name)
def test_records_pass(client: Client, secured: tuple[Security, SecuredBarnabas], tmp_path: Path) -> None:
    security, broker = secured
    assert play(client, security.driver(client.with_tls(), broker.name), broker, tmp_path)


def test_a_client_in_plain_text_gets_nowhere(secured: tuple[Security, SecuredBarnabas]) -> None:
    """Or the tests above would pass without a word of TLS."""
    _, broker = secured
    assert answers(broker.port)
    assert not answers(broker.secured_port)
