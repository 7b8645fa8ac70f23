"""Members leave, also while they wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("classic/leave_group"), ids=name_of)
def test_script(path: Path) -> None:
    play(path)
