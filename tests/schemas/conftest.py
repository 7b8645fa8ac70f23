"""The fixture of a registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.schemas.registry_server import RegistryServer, running_registry


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """An empty registry."""
    with running_registry() as registry:
        yield registry
