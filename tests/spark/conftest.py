"""The fixtures of Spark tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from barnabas.spark.plain_errors import HIDE_TRACEBACK
from tests.spark.session import servers, spark, topics

__all__ = ["servers", "spark", "topics"]


@pytest.fixture(autouse=True)
def tracebacks() -> Iterator[None]:
    """An error of the source changes the environment of its process, which ends with it; this process does not."""
    yield
    os.environ.pop(HIDE_TRACEBACK, None)
