"""The golden scripts of replication: what brokers and controller say to each other, and what each replica then holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import name_of, play, scripts_in
from tests.replication.script import ReplicationScript


@pytest.mark.parametrize("path", scripts_in(Path(__file__).parent / "scripts"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ReplicationScript)
