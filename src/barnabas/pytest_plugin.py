"""Pytest fixtures: a real broker inside a test.

    def test_orders(barnabas):
        producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers})

- `barnabas_broker` lives for the session: one broker for each process, so each worker of pytest-xdist has its own.
- `barnabas` is the same broker, reset before each test that asks for it.

Pytest imports this module in every run, so it imports nothing but pytest, and the broker only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.server.embedded import Broker


@pytest.fixture(scope="session")
def barnabas_broker() -> Iterator[Broker]:
    """Yield a broker for the whole session; a test finds what the tests before it left."""
    from barnabas.server.embedded import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def barnabas(barnabas_broker: Broker) -> Broker:
    """Return the session's broker after a reset: no topics, no groups."""
    barnabas_broker.reset()
    return barnabas_broker
