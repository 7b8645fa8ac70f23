"""The names of a package that are imported when they are first used, so that the package itself is cheap to import."""

import sys
from collections.abc import Callable
from importlib import import_module


def imported_when_used(package: str, /, **modules: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a package, from the module of each name."""

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
