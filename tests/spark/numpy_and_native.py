"""The two ways in which records are decoded and digested, as tests choose them: numpy, and barnabas-native where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from barnabas.spark.native_library import VARIABLE, native_library

IS_NATIVE_INSTALLED = find_spec("barnabas_native") is not None

needs_native = pytest.mark.skipif(not IS_NATIVE_INSTALLED, reason="barnabas-native is not installed")
WAYS = ["numpy", pytest.param("native", marks=needs_native)]
"""For `pytest.mark.parametrize`."""


def installed() -> list[str]:
    """Return the names of the ways that can be chosen here."""
    return ["numpy", "native"] if IS_NATIVE_INSTALLED else ["numpy"]


@contextmanager
def chosen(way: str) -> Iterator[None]:
    """Let this process work with numpy or with barnabas-native."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, {"numpy": "no", "native": "yes"}[way])
        native_library.cache_clear()
        try:
            yield
        finally:
            native_library.cache_clear()
