"""Processes in which an installed package is not to be found, as in an environment without it.

The folder goes into `PYTHONPATH`: the interpreter imports `sitecustomize` from it when it starts, Spark's workers too.
"""

from __future__ import annotations

from pathlib import Path

_FINDER = """
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else super().find_spec(name, path, target)


sys.meta_path[:] = [Hiding if each is PathFinder else each for each in sys.meta_path]
"""


def hide(folder: Path, *packages: str) -> None:
    """Let processes with this folder in `PYTHONPATH` not find the packages."""
    (folder / "sitecustomize.py").write_text(_FINDER.format(hidden=packages))
