"""A cluster of two brokers in memory: broker 2 is the controller and coordinates group g."""

import pytest

from barnabas.client.admin import Admin
from tests.client.scripted_broker import MemoryCluster


@pytest.fixture
def memory() -> MemoryCluster:
    cluster = MemoryCluster(1, 2, controller=2)
    cluster.topics = {"t": [1, 2], "__hidden": [1]}
    cluster.coordinators = {"g": 2}
    return cluster


@pytest.fixture
def admin(memory: MemoryCluster) -> Admin:
    return Admin(memory.client())
