"""Names that are imported when they are first used."""

import sys
from types import ModuleType

import pytest

from barnabas.imported_when_used import imported_when_used


def test_a_name_is_imported_once_and_others_are_attribute_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    home, package = ModuleType("home_of_thing"), ModuleType("package_of_thing")
    home.thing = "first"
    package.__getattr__ = imported_when_used("package_of_thing", thing="home_of_thing")
    monkeypatch.setitem(sys.modules, "package_of_thing", package)
    with pytest.raises(AttributeError, match="module 'package_of_thing' has no attribute 'other'"):
        package.other  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        package.thing  # noqa: B018
    monkeypatch.setitem(sys.modules, "home_of_thing", home)
    assert package.thing == "first"
    home.thing = "second"
    assert package.thing == "first"
