from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.controlling import Controlling
from tests.api.share_cluster import Cluster
from tests.replication.hosting import Hosting


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    made = Hosting(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.node.close()


@pytest.fixture
def controlling() -> Iterator[Controlling]:
    made = Controlling()
    yield made
    made.close()
