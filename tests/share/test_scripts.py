"""The share group's golden scripts: what members acquire, what is written, and what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import name_of, play, scripts_in
from tests.share.script import ShareScript


@pytest.mark.parametrize("path", scripts_in(Path(__file__).parent / "scripts"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ShareScript)
