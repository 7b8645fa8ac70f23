from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replication.hosting import Hosting


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    made = Hosting(tmp_path)
    yield made
    made.close()
