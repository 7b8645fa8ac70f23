"""The names of a package that are imported when they are first used, so that the package itself is cheap to import.

__getattr__ = imported_when_used(__name__, {"Broker": "barnabas.embedded.broker"})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["imported_when_used"]


def imported_when_used(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`.

    Args:
        package: its name.
        modules: the module of each name.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
