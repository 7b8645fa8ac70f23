"""The golden scripts of a module, and playing them (see `script` for their language)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.group.script import ScriptRunner

SCRIPTS = Path(__file__).parent / "scripts"


def scripts_of(module: str) -> list[Path]:
    """The scripts that show what a module does."""
    found = sorted((SCRIPTS / module).glob("*.txt"))
    assert found, f"no scripts for {module}"
    return found


def name_of(path: Path) -> str:
    return path.stem


def play(path: Path, runner: type[ScriptRunner] = ScriptRunner) -> None:
    """Every answer, record and state is exactly as written; with UPDATE_SCRIPTS=1 it is written as it is."""
    written = path.read_text()
    played = runner().run(written)
    if os.environ.get("UPDATE_SCRIPTS"):
        path.write_text(played)
    else:
        assert played == written
