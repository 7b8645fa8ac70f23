"""The controller's golden scripts: request, records, answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import name_of, play, scripts_in
from tests.metadata.script import ScriptRunner


@pytest.mark.parametrize("path", scripts_in(Path(__file__).parent / "scripts"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ScriptRunner)
