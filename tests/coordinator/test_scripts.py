"""Every scenario in `scripts/` plays exactly as written (see `script` for the language)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coordinator.script import ScriptRunner

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(path: Path) -> None:
    written = path.read_text()
    played = ScriptRunner().run(written)
    if os.environ.get("UPDATE_SCRIPTS"):
        path.write_text(played)
    else:
        assert played == written
