"""Partitions that a group may not have yet, by the scripts of consumer groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("consumer/ordered_growth"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ConsumerScriptRunner)
