"""The phases of a rebalance and their timeouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("classic/rebalance"), ids=name_of)
def test_script(path: Path) -> None:
    play(path)


def test_the_log_counts_members(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for path in scripts_of("classic/rebalance"):
        play(path)
    counted = {
        record.getMessage().partition(" with ")[2] for record in caplog.records if "generation" in record.message
    }
    assert {"1 member", "2 members"} <= counted
    assert "1 members" not in counted
