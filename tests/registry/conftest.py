"""A broker with a registry, for all tests of the room; each test uses subjects of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from tests.registry.asking import Asking


@pytest.fixture(scope="package")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(registry=True) as broker:
        yield broker


@pytest.fixture(scope="package")
def registry(broker: barnabas.Broker) -> Asking:
    return Asking(broker.schema_registry_url)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """A subject that no other test has."""
    return (
        str(request.node.nodeid)
        .rpartition("/")[2]
        .replace("/", "-")
        .replace("::", "-")
        .replace("[", "-")
        .replace("]", "")
    )
