"""What to install for an extra is said in words that are true wherever barnabas came from."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

from barnabas.words.requirements import NotInstalled, install_command, needed_by
from tests.pages import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def packages(command: str) -> set[str]:
    return {name for name, _ in re.findall(r'"([a-z-]+)([^"]*)"', command)}


def listed(extra: str) -> set[str]:
    """Return the packages of an extra in pyproject.toml, with those of the extras that it includes."""
    found: set[str] = set()
    for line in EXTRAS[extra]:
        if own := re.fullmatch(r"barnabas\[(.+)\]", line):
            found = found.union(*(listed(each) for each in own[1].split(",")))
        else:
            found.add(re.match(r"[a-z-]+", line)[0])  # type: ignore[index]
    return found


@pytest.mark.parametrize("extra", list(EXTRAS))
def test_the_command_lists_the_extra_and_never_barnabas(extra: str) -> None:
    """The name is not registered at an index."""
    command = install_command(extra)
    assert command.startswith(f"{sys.executable} -m pip install ")
    assert packages(command) == listed(extra)
    assert "barnabas" not in packages(command)
    assert command.count('"') == 2 * command.count(">=")


def test_what_nobody_needs_is_in_no_extra_of_its_own() -> None:
    assert listed("cli") == {"confluent-kafka"}
    assert not listed("spark") & {"matplotlib", "pandas", "confluent-kafka"}


@pytest.mark.parametrize(
    ("extra", "module", "package"),
    [
        ("cli", "confluent_kafka", "confluent-kafka"),
        ("schemas", "google.protobuf", "protobuf"),
        ("lake", "numpy", "numpy"),
    ],
)
def test_a_missing_package_is_a_sentence(extra: str, module: str, package: str) -> None:
    with pytest.raises(NotInstalled) as caught, needed_by("the kettle", extra):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert str(caught.value) == f"the kettle needs {package}: {install_command(extra)}"
    assert caught.value.sentence == f"the kettle needs {package}"
    assert caught.value.name == package
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("module", ["barnabas.cli.mistyped", "pyspark", "confluent", None])
def test_another_missing_module_is_a_mistake_of_ours(module: str | None) -> None:
    with pytest.raises(ModuleNotFoundError) as caught, needed_by("the kettle", "cli"):
        raise ModuleNotFoundError("No module", name=module)
    assert not isinstance(caught.value, NotInstalled)
