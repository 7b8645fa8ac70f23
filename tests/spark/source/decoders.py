"""The two decoders of record batches, as tests choose them: numpy's, and barnabas-native's where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from barnabas.spark.native_library import VARIABLE, native_library

IS_NATIVE_INSTALLED = find_spec("barnabas_native") is not None

needs_native = pytest.mark.skipif(not IS_NATIVE_INSTALLED, reason="barnabas-native is not installed")
DECODERS = ["numpy", pytest.param("native", marks=needs_native)]
"""For `pytest.mark.parametrize`."""


def installed() -> list[str]:
    """Return the names of the decoders that can be chosen here."""
    return ["numpy", "native"] if IS_NATIVE_INSTALLED else ["numpy"]


@contextmanager
def chosen(decoder: str) -> Iterator[None]:
    """Let this process decode with numpy or with barnabas-native."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, {"numpy": "no", "native": "yes"}[decoder])
        native_library.cache_clear()
        try:
            yield
        finally:
            native_library.cache_clear()
