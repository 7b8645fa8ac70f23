"""The node that is scraped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metrics.monitored import Monitored


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Monitored]:
    made = Monitored(tmp_path, offsets_topic_num_partitions="2")
    yield made
    made.close()
