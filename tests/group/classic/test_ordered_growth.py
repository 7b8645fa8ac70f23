"""The leader's assignment without the partitions that are held, by its scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("classic/ordered_growth"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ConsumerScriptRunner)
