"""The version is written twice: for the package, and for the broker's first line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import barnabas
from barnabas.version import VERSION


def test_both_are_the_same() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION == barnabas.__version__
