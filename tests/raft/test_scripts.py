"""The quorum's golden scripts: what the nodes say to each other, and what each then holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import name_of, play, scripts_in
from tests.raft.script import QuorumScript


@pytest.mark.parametrize("path", scripts_in(Path(__file__).parent / "scripts"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, QuorumScript)
