"""Each deliberate bug of the sink is caught within its number of seeds. It takes minutes: `make long` runs it."""

from __future__ import annotations

from itertools import count, islice

import pytest

from tests.simulation.sink.deliberate_bugs_of_the_sink import BUGS
from tests.simulation.sink.plan import SCENARIOS, SinkPlan
from tests.simulation.sink.sink_cluster import run

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(BUGS))
def test_each_deliberate_bug_is_caught(name):
    bug = BUGS[name]
    seeds = list(islice((n for n in count() if SinkPlan.of(n, bug.nodes).scenario == bug.shown_by), bug.seeds))
    assert any(not run(seed, name, nodes=bug.nodes).passed for seed in seeds), f"{name} went unnoticed in {seeds}"


@pytest.mark.parametrize("name", sorted(BUGS))
def test_each_deliberate_bug_fits_what_it_replaces(name):
    with BUGS[name].switch():
        assert BUGS[name].shown_by in SCENARIOS
