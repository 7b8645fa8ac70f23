"""The compatibility card: every client goes through every scenario that its library can express, on barnabas and on Apache Kafka.

A scenario must end well on both brokers, and what the client saw must be the same. The results become docs/compatibility.md.

Libraries have races of their own, and lose them now and then on either broker. A scenario that went wrong is played again on both, with
names of its own, and a warning tells what happened: a broker that answers otherwise does so each time.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conform.brokers import BarnabasProcess, KafkaProcess, alive
from tests.conform.card.clients import CLIENTS, Client
from tests.conform.card.results import Card
from tests.conform.card.scenarios import SCENARIOS
from tests.conform.card.security import Security, address_of
from tests.conform.card.stage import Stage
from tests.conform.card.toolchains import Unavailable
from tests.conform.nodes import Nodes

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

ATTEMPTS = 3

CELLS = [
    pytest.param(client, scenario, id=f"{client.name}-{scenario}".replace(" ", "-"))
    for client in CLIENTS
    for scenario in SCENARIOS
    if scenario not in client.without
]
Broker = BarnabasProcess | KafkaProcess | Nodes


@contextlib.contextmanager
def ready(broker: Broker, name: str) -> Iterator[Callable[[], None]]:
    """Start a broker that is down; yield what is to be called before each command of a scenario."""
    if isinstance(broker, Nodes):
        with broker.one_is_killed(name) as before_command:
            yield before_command
    else:
        if not alive(broker):
            broker.start()
        yield lambda: None


@pytest.mark.parametrize(("client", "scenario"), CELLS)
def test_a_client_sees_the_same_on_both_brokers(
    client: Client,
    scenario: str,
    both_brokers: dict[str, Broker],
    security: Security | None,
    card: Card,
    tmp_path: Path,
) -> None:
    if security is not None and (why := client.why_not(security.way)):
        pytest.skip(why)
    try:
        command = client.prepare() if security is None else client.with_tls()
    except Unavailable as reason:
        card.unavailable(client.name, str(reason))
        pytest.skip(str(reason))
    card.version(client.name, command)

    def play(name: str, attempt: int) -> list[Any] | Exception:
        folder = tmp_path / f"{name}-{attempt}"
        folder.mkdir()
        again = f"-{attempt}" if attempt else ""
        prefix = f"{client.name}-{scenario}{again}".replace(" ", "-").lower()
        with ready(both_brokers[name], prefix) as before_command:
            broker = both_brokers[name]
            started = command if security is None else security.driver(command, name)
            stage = Stage(
                broker,
                lambda plain: [*started, address_of(broker, plain)],
                prefix,
                folder,
                client.codecs,
                client.traits,
                before_command,
            )
            try:
                SCENARIOS[scenario](stage)
                return stage.transcript
            except Exception as error:
                return error
            finally:
                stage.end()

    for attempt in range(ATTEMPTS):
        with ThreadPoolExecutor(len(both_brokers)) as pool:
            played = pool.map(play, both_brokers, [attempt] * len(both_brokers))
            seen = dict(zip(both_brokers, played, strict=True))
        card.record(client.name, scenario, seen)
        # Apache Kafka's error first: what fails there too is not ours to mend.
        errors = {name: seen[name] for name in ("apache-kafka", "barnabas") if isinstance(seen.get(name), Exception)}
        first, *others = seen.values()
        if not errors and all(other == first for other in others):
            return
        warnings.warn(f"{client.name}, {scenario}: {errors or seen}", stacklevel=1)
    for error in errors.values():
        raise error
    raise AssertionError(seen)
