"""Which processes use barnabas-native, and what the log says of it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from barnabas.spark.native_library import VARIABLE, native_library
from barnabas.spark.plain_errors import QueryError


@pytest.fixture(autouse=True)
def forgotten(monkeypatch) -> Iterator[None]:
    """Each test chooses for itself."""
    monkeypatch.delenv(VARIABLE, raising=False)
    native_library.cache_clear()
    yield
    native_library.cache_clear()


def install(monkeypatch, module: object) -> None:
    """Let an import of the package give this; None if it is not installed."""
    monkeypatch.setitem(sys.modules, "barnabas_native", module)


@pytest.mark.parametrize("wish", ["", "yes"])
def test_the_package_is_used_if_it_is_installed_and_the_log_says_so_once(monkeypatch, caplog, wish):
    module = SimpleNamespace(INTERFACE=1)
    install(monkeypatch, module)
    monkeypatch.setenv(VARIABLE, wish)
    with caplog.at_level(logging.INFO, "barnabas.spark"):
        assert native_library() is native_library() is module
    assert caplog.messages == ["barnabas-native decodes and digests records"]


@pytest.mark.parametrize(
    ("wish", "module", "reason"),
    [
        ("no", SimpleNamespace(INTERFACE=1), "BARNABAS_NATIVE is no"),
        ("", None, "barnabas-native is not installed"),
        ("", SimpleNamespace(INTERFACE=2), "the installed barnabas-native is of another version"),
    ],
)
def test_numpy_does_the_work_otherwise_and_the_log_says_why(monkeypatch, caplog, wish, module, reason):
    install(monkeypatch, module)
    monkeypatch.setenv(VARIABLE, wish)
    with caplog.at_level(logging.INFO, "barnabas.spark"):
        assert native_library() is native_library() is None
    assert caplog.messages == [f"numpy decodes and digests records, more slowly than barnabas-native: {reason}"]


def test_a_process_that_must_use_it_fails_without_it(monkeypatch):
    install(monkeypatch, None)
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(QueryError, match="BARNABAS_NATIVE is yes, and barnabas-native is not installed: install"):
        native_library()


def test_another_wish_is_a_mistake(monkeypatch):
    monkeypatch.setenv(VARIABLE, "on")
    with pytest.raises(ValueError, match="BARNABAS_NATIVE is 'on': set it to yes or no"):
        native_library()
