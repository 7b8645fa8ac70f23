"""The compatibility card: every client goes through every scenario that its library can express, on barnabas and on Apache Kafka.

A scenario must end well on both brokers, and what the client saw must be the same. The results become docs/compatibility.md.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conform.brokers import BarnabasProcess, KafkaProcess, alive
from tests.conform.card.clients import CLIENTS, Client
from tests.conform.card.results import Card
from tests.conform.card.scenarios import SCENARIOS
from tests.conform.card.stage import Stage
from tests.conform.card.toolchains import Unavailable

pytestmark = [pytest.mark.conform, pytest.mark.timeout(600)]

CELLS = [
    pytest.param(client, scenario, id=f"{client.name}-{scenario}".replace(" ", "-"))
    for client in CLIENTS
    for scenario in SCENARIOS
    if scenario not in client.without
]
Broker = BarnabasProcess | KafkaProcess


@pytest.mark.parametrize(("client", "scenario"), CELLS)
def test_a_client_sees_the_same_on_both_brokers(
    client: Client, scenario: str, both_brokers: dict[str, Broker], card: Card, tmp_path: Path
) -> None:
    try:
        command = client.prepare()
    except Unavailable as reason:
        card.unavailable(client.name, str(reason))
        pytest.skip(str(reason))
    card.version(client.name, command)

    def play(name: str) -> list[Any] | Exception:
        folder = tmp_path / name
        folder.mkdir()
        broker = both_brokers[name]
        if not alive(broker):
            broker.start()
        prefix = f"{client.name}-{scenario}".replace(" ", "-").lower()
        stage = Stage(broker, lambda address: [*command, address], prefix, folder, client.codecs, client.traits)
        try:
            SCENARIOS[scenario](stage)
            return stage.transcript
        except Exception as error:
            return error
        finally:
            stage.end()

    with ThreadPoolExecutor(len(both_brokers)) as pool:
        seen = dict(zip(both_brokers, pool.map(play, both_brokers), strict=True))
    card.record(client.name, scenario, seen)
    for error in (seen[name] for name in ("apache-kafka", "barnabas") if name in seen):
        if isinstance(error, Exception):
            raise error
    first, *others = seen.values()
    assert all(other == first for other in others), seen
