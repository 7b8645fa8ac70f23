"""The package barnabas-native: it is built where it can be, and barnabas's own packages have nothing of it."""

from __future__ import annotations

import shutil
import sysconfig
import tomllib
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from barnabas.version import VERSION
from tests.pages import ROOT

CAN_BUILD = shutil.which("cc") is not None and (Path(sysconfig.get_path("include")) / "Python.h").exists()


@pytest.mark.skipif(not CAN_BUILD, reason="needs a C compiler and Python's headers")
def test_make_install_builds_it_where_there_is_a_compiler() -> None:
    """Else the tests of the decoder in C would be skipped, and nothing would say so."""
    assert find_spec("barnabas_native") is not None


@pytest.mark.skipif(find_spec("barnabas_native") is None, reason="barnabas-native is not installed")
def test_it_has_types_and_one_library_for_every_python() -> None:
    names = {file.name for file in files("barnabas-native") or ()}
    assert {"py.typed", "_native.pyi", "LICENSE"} <= names
    assert any(name.startswith("_native.abi3.") for name in names), names


def test_it_is_released_with_barnabas() -> None:
    assert tomllib.loads((ROOT / "native" / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_barnabas_requires_it_nowhere() -> None:
    """Its name is not registered: a stranger could register it and send code to those who install an extra that names it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"]]
    wanted += [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    assert [each for each in wanted if "native" in each] == []


def test_the_source_package_of_barnabas_does_without_it() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert not any(each.startswith("native") for target in ("sdist", "wheel") for each in build[target]["only-include"])
