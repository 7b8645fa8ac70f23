"""The golden scripts of a module, and playing them (see `script` for their language)."""

from __future__ import annotations

from pathlib import Path

from tests import golden
from tests.golden import name_of
from tests.group.script import ScriptRunner

__all__ = ["SCRIPTS", "name_of", "play", "scripts_of"]

SCRIPTS = Path(__file__).parent / "scripts"


def scripts_of(module: str) -> list[Path]:
    """The scripts that show what a module does."""
    return golden.scripts_in(SCRIPTS / module)


def play(path: Path, runner: type[ScriptRunner] = ScriptRunner) -> None:
    """Every answer, record and state is exactly as written."""
    golden.play(path, runner)
