"""What to install for Spark is said in words that are true wherever barnabas came from."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from barnabas.spark.requirements import install_command

ROOT = Path(__file__).parent.parent.parent
EXTRA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["spark"]


def test_the_command_lists_the_extra() -> None:
    command = install_command()
    assert command.startswith(f"{sys.executable} -m pip install ")
    named = re.findall(r'"([a-z]+)([^"]*)"', command)
    assert sorted(name for name, _ in named) == sorted(re.match(r"[a-z]+", line)[0] for line in EXTRA)  # type: ignore[index]
    assert all(bounds for _, bounds in named)
