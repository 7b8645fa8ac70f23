"""The longest turns of a small cluster: each phase comes to its end, and is reported."""

from __future__ import annotations

import re

import pytest
from bench.long_turns import Growing, Turns


@pytest.mark.long
def test_a_small_cluster_goes_through_all_phases(capsys):
    growing = Growing(3, 4, 3, 2, Turns())
    growing.world.play(growing.story())
    phases = re.findall(r"^(.*): [\d.]+ s, ", capsys.readouterr().out, re.MULTILINE)
    assert phases[:4] == ["start", "create", "all nodes know all", "followers fetch"]
    assert phases[-3:] == ["a broker is killed", "it is started again", "all are in sync"]
    assert growing.history.errors + growing.world.errors == []
