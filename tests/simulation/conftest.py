"""The fixture of runs under faults."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Nodes under faults have much to say; other tests listen to theirs."""
    logger = logging.getLogger("barnabas")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
