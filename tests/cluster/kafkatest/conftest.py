"""The fixture of tests that start clusters and programs of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends, after the test, what the test has put there."""
    with ExitStack() as made:
        yield made
