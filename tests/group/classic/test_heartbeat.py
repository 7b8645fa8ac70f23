"""Heartbeats of members, of fenced members and of strangers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("classic/heartbeat"), ids=name_of)
def test_script(path: Path) -> None:
    play(path)
