from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.share_cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.node.close()
